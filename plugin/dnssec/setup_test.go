package dnssec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

const (
	publicKey  = "example.org. IN DNSKEY 257 3 13 EqABt5vxS3zaxKFP8kGc/iiph1vTH7ZdNQrOSyTvcbEgEOl0un7CFHp+ KLC22WKGYhgNcKlIQMlooRuNAfOaIw==\n"
	otherKey   = "example.org. IN DNSKEY 257 3 13 qMbcWCDMg5nOT+ZW5jik2KLa8cjzfhW4YFCPH+0HDtsglQ8ps3Wcy1bX 3ub+EfxMplHI1QQnTTUowxYREv3ktQ==\n"
	privateKey = "Private-key-format: v1.3\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: PI7Y7cQjjI1nfTINzsT9oCx/7qoCrgGE+kYLtoFaOds=\n"
)

// folder has keys in files.
func folder(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.key": publicKey, "good.private": privateKey,
		"half.key":      publicKey,
		"other.key":     otherKey,
		"other.private": privateKey,
		"noKey.key":     "example.org. 60 IN A 192.0.2.1\n", "noKey.private": privateKey,
		"noPrivate.key": publicKey, "noPrivate.private": "nothing\n",
		"empty.key": publicKey, "empty.private": "",
		"cluster.key": strings.Replace(publicKey, "example.org", "cluster.local", 1), "cluster.private": privateKey,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSetup(t *testing.T) {
	dir := folder(t)
	for _, tc := range []struct {
		input   string
		zones   string
		keys    int
		compact bool
		err     string
	}{
		{"dnssec", "example.com.", 0, false, ""},
		{"dnssec example.org", "example.org.", 0, false, ""},
		{"dnssec ä.org", `\195\164.org.`, 0, false, ""}, // as names of queries are written
		{"dnssec 10.0.0.0/8", "10.in-addr.arpa.", 0, false, ""},
		{"dnssec example.org {\ncache_capacity 100\n}", "example.org.", 0, false, ""},
		{"dnssec example.org {\nkey file good\n}", "example.org.", 1, false, ""},
		{"dnssec example.org {\nkey file good.key good.private\nkey file " + dir + "/good\ndenial compact\n}", "example.org.", 1, true, ""}, // one key
		{"dnssec example.org cluster.local {\nkey file good cluster good\n}", "example.org. cluster.local.", 2, false, ""},
		{"dnssec a.example.org {\nkey file good\ndenial blacklies\n}", "a.example.org.", 1, false, ""},
		{"dnssec example.org cluster.local {\nkey file cluster\n}", "example.org. cluster.local.", 1, false, ""},
		{"dnssec example.org {\nkey file cluster\n}", "", 0, false, "key cluster.local. (keyid: 39719) can not sign any of the zones"},
		{"dnssec org {\nkey file good\n}", "", 0, false, "can not sign any of the zones"},
		{"dnssec example.org {\nkey\n}", "", 0, false, "Wrong argument count or unexpected line ending after 'key'"},
		{"dnssec example.org {\nkey file\n}", "", 0, false, "Wrong argument count or unexpected line ending after 'file'"},
		{"dnssec example.org {\nkey disk good\n}", "", 0, false, `unknown source of keys "disk"`},
		{"dnssec example.org {\nkey file nowhere\n}", "", 0, false, "open " + dir + "/nowhere.key: no such file or directory"},
		{"dnssec example.org {\nkey file half\n}", "", 0, false, "open " + dir + "/half.private: no such file or directory"},
		{"dnssec example.org {\nkey file noKey\n}", "", 0, false, "no public key found"},
		{"dnssec example.org {\nkey file noPrivate\n}", "", 0, false, `private key "` + dir + `/noPrivate.private": no private key seen (`},
		{"dnssec example.org {\nkey file good empty\n}", "", 0, false, `private key "` + dir + `/empty.private": dns: bad private key`},
		{"dnssec example.org {\nkey file other\n}", "", 0, false, "(keyid: 40352): the private key is not that of the public key"},
		{"dnssec example.org {\ncache_capacity many\n}", "", 0, false, `strconv.Atoi: parsing "many": invalid syntax`},
		{"dnssec example.org {\ncache_capacity\n}", "", 0, false, "Wrong argument count"},
		{"dnssec example.org {\ndenial nsec3\n}", "", 0, false, "denial"},
		{"dnssec example.org {\nsign\n}", "", 0, false, "unknown property 'sign'"},
		{"dnssec example..org", "", 0, false, `invalid zone "example..org"`},
		{"dnssec\ndnssec", "", 0, false, "this plugin can only be used once per Server Block"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		c.ServerBlockKeys = []string{"example.com"}
		dnsserver.GetConfig(c).Root = dir
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || !strings.HasPrefix(err.Error(), "plugin/dnssec: ")) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
		if err != nil || tc.err != "" {
			continue
		}
		d := dnsserver.GetConfig(c).Plugin[0](nil).(Dnssec)
		if strings.Join(d.zones, " ") != tc.zones || len(d.keys.all) != tc.keys || d.compact != tc.compact {
			t.Errorf("%q: got %v, %d keys, compact %t", tc.input, d.zones, len(d.keys.all), d.compact)
		}
	}
}

// From the start of the configuration to its end somebody looks after the signatures.
func TestKeeperBeginsWithTheServer(t *testing.T) {
	c := caddy.NewTestController("dns", "dnssec example.org")
	c.ServerBlockKeys = []string{"example.org"}
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	d := dnsserver.GetConfig(c).Plugin[0](nil).(Dnssec)
	if d.sigs.keeper != nil {
		t.Error("setup begins what only a start may")
	}
	instance := dnsserver.Instance(c)
	for _, f := range instance.OnStartup {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	if d.sigs.keeper == nil {
		t.Error("nobody looks after signatures")
	}
	for _, f := range instance.OnShutdown {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

func TestKeyFile(t *testing.T) {
	dir := folder(t)
	k, err := ParseKeyFile(filepath.Join(dir, "good.key"), filepath.Join(dir, "good.private"))
	if err != nil || k.K.Hdr.Ttl != 3600 || k.D.KeyTag != 39719 || k.D.DigestType != dns.SHA256 {
		t.Errorf("got %v, %v", k, err)
	}
}
