package grpc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/policy"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
)

func TestReadme(t *testing.T) {
	text, err := corefile.ReadmeSyntax("README.md")
	if err != nil || text != directive.Doc().Syntax {
		t.Errorf("%v: the README has\n%s\nwant\n%s", err, text, directive.Doc().Syntax)
	}
}

func TestSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver 192.0.2.5\nnameserver 2001:db8::5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings{GRPC: GRPC{policy: policy.Named("random")}}
	err := directive.Parse(caddy.NewTestController("dns", "grpc Example.org 192.0.2.1 [::1]:54 [::2] [fe80::1%lo] 192.0.2.2: dns://192.0.2.3:55 grpc://192.0.2.4 grpc://[::3]: dns://"+file+" "+file+" unix:///run/g.sock {\nexcept a.example.org b.example.org\npolicy round_robin\ntls\ntls_servername dns.example\nfallthrough x.example.org\n}"), &s)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.targets, " "); got != "192.0.2.1:53 [::1]:54 [::2]:53 [fe80::1%lo]:53 192.0.2.2:53 192.0.2.3:55 192.0.2.4:443 [::3]:443 192.0.2.5:53 [2001:db8::5]:53 192.0.2.5:53 [2001:db8::5]:53 unix:///run/g.sock" {
		t.Error(got)
	}
	if wire.Text(s.zones.From) != "example.org." || len(s.zones.Excepted()) != 2 || s.policy.String() != "round_robin" || s.tls.ServerName != "dns.example" || !s.Fall.Through("y.x.example.org.") {
		t.Errorf("%+v", &s)
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"grpc":                                     "usage: grpc FROM TO...",
		"grpc .":                                   "usage: grpc FROM TO...",
		"grpc . a27.0.0.1":                         `not an IP address or file "a27.0.0.1"`,
		"grpc . ::1\ngrpc com ::2":                 "once per Server Block",
		"grpc . ::1 {\npolicy fair\n}":             "unknown policy 'fair'",
		"grpc . ::1 {\nblaatl\n}":                  "unknown property 'blaatl'",
		"grpc . ::1 {\ntls a b c d\n}":             "usage: tls",
		"grpc " + strings.Repeat("x", 64) + " ::1": "unable to normalize",
		"grpc . " + strings.Repeat("::1 ", 16):     "more than 15 TOs configured: 16",
	} {
		if err := setup(caddy.NewTestController("dns", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestSetup(t *testing.T) {
	c := caddy.NewTestController("dns", "grpc . 127.0.0.1:1 127.0.0.1:2")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	g := dnsserver.GetConfig(c).Plugin[0](nil).(*GRPC)
	if g.Len() != 2 || g.policy.String() != "random" {
		t.Errorf("%+v", g)
	}
	for _, p := range g.proxies {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	}
}
