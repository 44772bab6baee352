package etcd

import (
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func requestOf(name string) request.Request {
	return request.Request{W: &test.ResponseWriter{}, Req: new(dns.Msg).SetQuestion(name, dns.TypeA)}
}

func TestReadme(t *testing.T) {
	text, err := corefile.ReadmeSyntax("README.md")
	if err != nil || text != directive.Doc().Syntax {
		t.Errorf("%v: the README has\n%s\nwant\n%s", err, text, directive.Doc().Syntax)
	}
}

func TestSetup(t *testing.T) {
	c := caddy.NewTestController("dns", "etcd skydns.local {\npath /a/b/\nendpoint http://127.0.0.1:1 http://127.0.0.1:2\ncredentials u p\nfallthrough x.local\nmin-lease-ttl 60\nmax-lease-ttl 2h\nstubzones\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	e := dnsserver.GetConfig(c).Plugin[0](nil).(*Etcd)
	defer e.OnShutdown()
	if e.Zones[0] != "skydns.local." || e.PathPrefix != "a/b" || e.MinLeaseTTL != 60 || e.MaxLeaseTTL != 7200 || !e.Fall.Through("y.x.local.") || e.Client != nil {
		t.Errorf("%+v", e)
	}
	if !e.Ready() {
		t.Error("not ready without a watch")
	}
	s := settings{etcd: new(Etcd)}
	if err := directive.Parse(caddy.NewTestController("dns", "etcd ä.local"), &s); err != nil || s.etcd.Zones[0] != `\195\164.local.` { // as queries have it
		t.Errorf("%q, %v", s.etcd.Zones, err)
	}
}

// A copy is kept only where that is wanted.
func TestWatchOption(t *testing.T) {
	for text, on := range map[string]bool{"etcd": false, "etcd {\nwatch\n}": true, "etcd {\nwatch ON\n}": true, "etcd {\nwatch off\n}": false} {
		s := settings{etcd: new(Etcd)}
		if err := directive.Parse(caddy.NewTestController("dns", text), &s); err != nil || s.watch != on {
			t.Errorf("%q: %v %v", text, s.watch, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"etcd a..b":                           `invalid zone "a..b"`,
		"etcd {\nendpoints a\n}":              "unknown property 'endpoints'",
		"etcd {\ncredentials\n}":              "usage: credentials",
		"etcd {\ncredentials u\n}":            "credentials requires 2 arguments, username and password",
		"etcd {\ntls a b c d\n}":              "maximum of three arguments allowed for TLS config, found 4",
		"etcd {\nstubzones x\n}":              "after 'x'",
		"etcd {\ntls nowhere.pem\n}":          "nowhere.pem",
		"etcd {\nmin-lease-ttl -1\n}":         "invalid min-lease-ttl value: TTL must be non-negative",
		"etcd {\nmax-lease-ttl x\n}":          "invalid TTL format, use format like '30', '30s', '5m', '1h', or '2h30m'",
		"etcd {\nmax-lease-ttl 9999999999\n}": "TTL too large, maximum is 4294967295 seconds",
		"etcd {\nwatch maybe\n}":              "maybe",
		"etcd\netcd":                          "once per Server Block",
	} {
		if err := setup(caddy.NewTestController("dns", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Where the first endpoint has http, none is asked over TLS, whatever files there are.
func TestTLSNeedsScheme(t *testing.T) {
	for endpoint, warned := range map[string]bool{
		"": true, "HTTP://127.0.0.1:1": true, "http://127.0.0.1:2 https://127.0.0.1:1": true,
		"https://127.0.0.1:1 http://127.0.0.1:2": false, "127.0.0.1:1": false, "unix://etcd.sock": false,
	} {
		text := "etcd {\ntls\n}"
		if endpoint != "" {
			text = "etcd {\ntls\nendpoint " + endpoint + "\n}"
		}
		out := logtest.Capture(t)
		c := caddy.NewTestController("dns", text)
		if err := setup(c); err != nil {
			t.Fatal(err)
		}
		defer dnsserver.GetConfig(c).Plugin[0](nil).(*Etcd).OnShutdown()
		if got := strings.Contains(out.String(), "without TLS"); got != warned {
			t.Errorf("%q: %v, want %v: %s", endpoint, got, warned, out)
		}
	}
	out := logtest.Capture(t)
	c := caddy.NewTestController("dns", "etcd {\nendpoint http://127.0.0.1:1\n}")
	if err := setup(c); err != nil || strings.Contains(out.String(), "without TLS") {
		t.Errorf("%v: %s", err, out)
	}
	defer dnsserver.GetConfig(c).Plugin[0](nil).(*Etcd).OnShutdown()
}

func TestWarnings(t *testing.T) {
	var w warnings
	now := time.Now()
	if !w.due("a", now) || w.due("a", now.Add(time.Second)) || !w.due("b", now) || !w.due("a", now.Add(2*warnPause)) {
		t.Error("a text comes through once a minute")
	}
}

func TestFits(t *testing.T) {
	pattern := strings.Split("/skydns/test/*/web", "/")
	for key, want := range map[string]bool{
		"/skydns/test/eu/web": true, "/skydns/test/us/web/a": true, "/skydns/test/us/db": false, "/skydns/test/web": false,
	} {
		if fits(key, pattern) != want {
			t.Errorf("%s: %v", key, !want)
		}
	}
}
