package tsig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func TestReadme(t *testing.T) {
	text, err := corefile.ReadmeSyntax("README.md")
	if err != nil || text != directive.Doc().Syntax {
		t.Errorf("%v: the README has\n%s\nwant\n%s", err, text, directive.Doc().Syntax)
	}
}

func TestSetup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("key f { secret "+secret+"; };"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := caddy.NewTestController("dns", "tsig example.org {\nsecret KEY.example.org "+secret+"\nsecrets "+file+"\nrequire AXFR\nrequire TXT MX\nrequire_opcode UPDATE\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	config := dnsserver.GetConfig(c)
	if len(config.TsigSecret) != 2 || config.TsigSecret["key.example.org."] != secret || config.TsigSecret["f."] != secret {
		t.Errorf("secrets: %v", config.TsigSecret)
	}
	var next plugin.Handler
	server := config.Plugin[0](next).(*TSIGServer)
	d := &server.demand
	if server.Zones[0] != "example.org." || d.wants(dns.OpcodeQuery, dns.TypeAXFR) || !d.wants(dns.OpcodeQuery, dns.TypeMX) || !d.wants(dns.OpcodeUpdate, dns.TypeA) {
		t.Errorf("%+v", server)
	}
}

func TestSetupErrors(t *testing.T) {
	for corefile, want := range map[string]string{
		"tsig {\nblah\n}":                       "unknown property 'blah'",
		"tsig {\nsecret a b c\n}":               "usage: secret NAME KEY",
		"tsig {\nsecret a b\nsecret A. b\n}":    `key "a." redefined`,
		"tsig {\nsecret a \"\"\n}":              `expected secret for key "a.": it is empty`,
		"tsig a..b {\nrequire all\n}":           `invalid zone "a..b"`,
		"tsig {\nsecrets nowhere.conf\n}":       "nowhere.conf",
		"tsig {\nrequire\n}":                    "usage: require",
		"tsig {\nrequire axfr\n}":               "unknown query type 'axfr'",
		"tsig {\nrequire_opcode INVALID\n}":     "unknown opcode 'INVALID'",
		"tsig\ntsig":                            "once per Server Block",
		"tsig {\nsecret a b\nrequire TYPE1X\n}": ":3 - Error during parsing: unknown query type",
	} {
		err := setup(caddy.NewTestController("dns", corefile))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "plugin/tsig: ") {
			t.Errorf("%q: %v, want %s", corefile, err, want)
		}
	}
}

// TestSecretThatIsNone: of a secret that is not in base64 the log warns, whether it stands in the Corefile or in a file.
func TestSecretThatIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("key good. { secret "+secret+"; }; key f { secret "+secret[1:]+"; };"), 0o600); err != nil {
		t.Fatal(err)
	}
	logged := logtest.Capture(t)
	c := caddy.NewTestController("dns", "tsig example.org {\nsecret c not-base64\nsecret fine "+secret+"\nsecrets "+file+"\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"c.", "f."} {
		if line := `The secret of key "` + key + `" is not in base64`; strings.Count(logged.String(), line) != 1 {
			t.Errorf("%q is not once in\n%s", line, logged)
		}
	}
	if n := strings.Count(logged.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, logged)
	}
}
