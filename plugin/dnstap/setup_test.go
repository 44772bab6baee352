package dnstap

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/coredns/caddy"
)

func TestReadme(t *testing.T) {
	text, err := corefile.ReadmeSyntax("README.md")
	if err != nil || text != directive.Doc().Syntax {
		t.Errorf("%v: the README has\n%s\nwant\n%s", err, text, directive.Doc().Syntax)
	}
}

func TestDirective(t *testing.T) {
	for text, want := range map[string]settings{
		"dnstap dnstap.sock full":                                     {network: "unix", addr: "dnstap.sock", full: true, writeBuffer: 1, queue: 1},
		"dnstap unix:///a/b":                                          {network: "unix", addr: "/a/b", writeBuffer: 1, queue: 1},
		"dnstap tcp://[::1]:6000 x 3 4":                               {network: "tcp", addr: "[::1]:6000", writeBuffer: 3, queue: 4},
		"dnstap tls://a.example:6000":                                 {network: "tcp", addr: "a.example:6000", writeBuffer: 1, queue: 1},
		"dnstap listen tcp://:6000 full":                              {listen: true, network: "tcp", addr: ":6000", full: true, writeBuffer: 1, queue: 1},
		"dnstap s {\nidentity I\nversion V\nextra E\nskipverify\n}":   {network: "unix", addr: "s", writeBuffer: 1, queue: 1, identity: "I", version: "V", extra: "E", skipVerify: true},
		"dnstap listen tls://:6000 {\ntls cert.pem key.pem ca.pem\n}": {listen: true, network: "tcp", addr: ":6000", writeBuffer: 1, queue: 1, cert: "cert.pem", key: "key.pem", ca: "ca.pem"},
	} {
		all, err := directive.ParseEach(caddy.NewTestController("dns", text), settings{})
		if err != nil || len(all) != 1 {
			t.Errorf("%q: %v", text, err)
			continue
		}
		want.socket = all[0].socket
		if all[0] != want {
			t.Errorf("%q: %+v, want %+v", text, all[0], want)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"dnstap":                      "usage: dnstap",
		"dnstap listen":               "dnstap listen requires an endpoint argument",
		"dnstap a full 0 10":          "dnstap: MultipleTcpWriteBuf must be between 1 and 1024 (MiB units): 0",
		"dnstap a full 1025 1":        "must be between 1 and 1024",
		"dnstap a full 1 4097":        "dnstap: MultipleQueue must be between 1 and 4096",
		"dnstap a full 1 x":           `dnstap: invalid MultipleQueue "x"`,
		"dnstap tcp://nowhere":        "want HOST:PORT",
		"dnstap http://a:1":           `unknown scheme "http"`,
		"dnstap a {\nidentitiy x\n}":  "unknown property 'identitiy'",
		"dnstap a {\nidentity\n}":     "usage: identity ID",
		"dnstap a {\ntls c k\n}":      "tls directive only valid for listeners",
		"dnstap listen a {\ntls c\n}": "tls requires cert and key file paths",
	} {
		if err := setup(caddy.NewTestController("dns", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Several are chained in their order; one without its peer starts all the same, and a listener listens.
func TestSetup(t *testing.T) {
	dir := loopback.Folder(t)
	c := caddy.NewTestController("dns", "dnstap "+filepath.Join(dir, "nobody")+" full\ndnstap listen "+filepath.Join(dir, "tap.sock")+" {\nidentity I\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	plugins := dnsserver.GetConfig(c).Plugin
	if len(plugins) != 2 {
		t.Fatal(len(plugins))
	}
	first, second := plugins[0](nil).(*Dnstap), plugins[1](nil).(*Dnstap)
	if !first.IncludeRawMessage || second.IncludeRawMessage || string(second.Identity) != "I" || len(first.Version) == 0 {
		t.Errorf("%+v %+v", first, second)
	}
	secure := settings{socket: "tls://:0"}
	if err := secure.certified(); err == nil || !strings.Contains(err.Error(), "requires cert and key files") {
		t.Error(err)
	}
}
