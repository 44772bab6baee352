package tls

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/caddyserver/certmagic"
	"github.com/coredns/caddy"
	"github.com/mholt/acmez/v3/acme"
	"github.com/miekg/dns"
)

func TestParseDomain(t *testing.T) {
	for in, want := range map[string]string{
		"dns.example.org":    "dns.example.org",
		"DNS.Example.ORG.":   "dns.example.org",
		"*.example.org":      "*.example.org",
		"bücher.example.org": "xn--bcher-kva.example.org",
		"localhost":          "localhost",
	} {
		if got, err := parseDomain(in); err != nil || got != want {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"192.0.2.1", "2001:db8::1", "", ".", "*.", "*", "a.*.example.org", "*.*.example.org", "a..b", "a b.org", "-a.org", strings.Repeat("a", 64) + ".org", "exam_ple.org"} {
		if got, err := parseDomain(in); err == nil || !strings.Contains(err.Error(), "invalid ACME domain") {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
}

func TestSetupACME(t *testing.T) {
	root := t.TempDir()
	mine := pemFiles(t)
	if err := os.WriteFile(filepath.Join(root, "empty.pem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const place = "plugin/tls: Testfile:2 - Error during parsing: "
	for options, want := range map[string]string{
		"acme dns.example.org":               "",
		"acme dns.example.org *.example.org": "",
		"acme DNS.Example. dns.example\nemail admin@example.org\nca https://ca.example/directory\nstorage certs\nca_root " + mine[2] + "\nresolver 192.0.2.1:53": "",
		"":                              "ACME requires at least one domain: name it by the option acme, or give files by tls CERT KEY [CA]",
		"email admin@example.org":       "ACME requires at least one domain",
		"acme":                          "Wrong argument count",
		"acme 1.2.3.4":                  place + `invalid ACME domain "1.2.3.4"`,
		"acme a.org\nacme b.org":        `ACME option "acme" can only be specified once`,
		"acme a.org\nemail a\nemail b":  `ACME option "email" can only be specified once`,
		"foo bar":                       place + `unknown ACME option "foo" (allowed: acme, email, ca, storage, ca_root, resolver)`,
		"emial a@example.org":           place + `unknown ACME option "emial": did you mean 'email'? (allowed: acme, email, `,
		"client_auth request":           place + `unknown ACME option "client_auth": it is for certificates from files, tls CERT KEY [CA] (allowed: acme, email, `,
		"keylog f":                      place + `unknown ACME option "keylog"`,
		"ca foo":                        place + `invalid ACME CA URL "foo"`,
		"ca ftp://ca.example":           `invalid ACME CA URL "ftp://ca.example"`,
		"resolver foo":                  place + `invalid ACME resolver "foo"`,
		"resolver 192.0.2.1:0":          `invalid ACME resolver "192.0.2.1:0"`,
		"resolver :53":                  `invalid ACME resolver ":53"`,
		"acme a.org\nca_root none":      "ACME CA root: open " + root + "/none: no such file or directory",
		"acme a.org\nca_root empty.pem": "ACME CA root " + root + "/empty.pem has no certificates",
		"acme a.org\nemail a b":         "Wrong argument count",
	} {
		c := caddy.NewTestController("dns", "tls {\n"+options+"\n}")
		dnsserver.GetConfig(c).Root = root
		err := setup(c)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got error %v, want %q", options, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", options, err)
			continue
		}
		config := dnsserver.GetConfig(c)
		if config.TLSConfig == nil || config.TLSConfig.MinVersion != tls.VersionTLS12 || len(config.Plugin) != 1 {
			t.Errorf("%q: got %v, %d plugins", options, config.TLSConfig, len(config.Plugin))
		}
		if _, err := config.TLSConfig.GetCertificate(&tls.ClientHelloInfo{}); err == nil || !strings.Contains(err.Error(), "ACME certificate is not ready for ") {
			t.Errorf("%q: got %v", options, err)
		}
		if _, err := config.TLSConfig.GetCertificate(&tls.ClientHelloInfo{ServerName: "other.org"}); err == nil || !strings.Contains(err.Error(), "no ACME certificate is for") {
			t.Errorf("%q: got %v", options, err)
		}
	}
	if err := setup(caddy.NewTestController("dns", "tls")); err == nil || !strings.Contains(err.Error(), "ACME requires at least one domain") {
		t.Errorf("bare: got %v", err)
	}
	if err := setup(caddy.NewTestController("dns", "tls a b {\nacme a.org\n}")); err == nil || !strings.Contains(err.Error(), "unknown option 'acme'") {
		t.Errorf("files and acme: got %v", err)
	}
}

func TestComplete(t *testing.T) {
	a := acmeSettings{domains: []string{"a.org"}}
	if err := a.complete("/etc/dns"); err != nil || a.storage != "/etc/dns/.coredns/acme" || a.ca != "https://acme-v02.api.letsencrypt.org/directory" {
		t.Errorf("got %+v, %v", a, err)
	}
	a = acmeSettings{domains: []string{"a.org"}, account: account{storage: "certs"}}
	wd, _ := os.Getwd()
	if err := a.complete(""); err != nil || a.storage != filepath.Join(wd, "certs") {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestConflictingDomains(t *testing.T) {
	i := &issuer{domains: map[string]account{}}
	one, two := account{ca: "https://one"}, account{ca: "https://two"}
	for _, tc := range []struct {
		s   acmeSettings
		err string
	}{
		{acmeSettings{[]string{"a.org", "b.org"}, one}, ""},
		{acmeSettings{[]string{"b.org"}, one}, ""},
		{acmeSettings{[]string{"c.org"}, two}, ""},
		{acmeSettings{[]string{"d.org", "b.org"}, two}, `ACME domain "b.org" is configured with conflicting options`},
	} {
		err := i.add(tc.s)
		if tc.err == "" && err != nil || tc.err != "" && (err == nil || err.Error() != tc.err) {
			t.Errorf("%v: got %v", tc.s, err)
		}
	}
}

// A responder (OCSP) that never answers is given up, which certmagic does with a proxy function only.
func TestResponderTime(t *testing.T) {
	i := &issuer{cache: certmagic.NewCache(certmagic.CacheOptions{GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return nil, nil }})}
	defer i.cache.Stop()
	cfg, err := i.newConfig(account{ca: "https://ca.example.org/directory", storage: t.TempDir()})
	if err != nil || cfg.OCSP.HTTPProxy == nil || cfg.OCSP.DisableStapling {
		t.Errorf("%+v, %v", cfg.OCSP, err)
	}
}

func TestCovers(t *testing.T) {
	a := acmeSettings{domains: []string{"dns.example.org", "*.example.net"}}
	for name, want := range map[string]string{
		"": "dns.example.org", "dns.example.org": "dns.example.org", "DNS.example.org.": "dns.example.org", "a.example.net": "*.example.net",
		"example.net": "", "a.b.example.net": "", "other.org": "",
	} {
		if got := a.covers(name); got != want {
			t.Errorf("%q: got %q", name, got)
		}
	}
}

func challengeFor(name, token string) acme.Challenge {
	return acme.Challenge{Type: acme.ChallengeTypeDNS01, Identifier: acme.Identifier{Type: "dns", Value: name}, KeyAuthorization: token}
}

// txt asks for TXT records in both lanes, which have to agree, and returns their values.
func txt(t *testing.T, c *Challenge, name string, qtype uint16) (values []string, passed bool) {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, qtype)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rc, err := c.ServeDNS(context.Background(), rec, m)
	if err != nil {
		t.Fatal(err)
	}
	if rc == 7 {
		passed = true
	} else {
		if !rec.Msg.Authoritative {
			t.Error("not authoritative")
		}
		for _, rr := range rec.Msg.Answer {
			if rr.Header().Ttl != 0 || rr.Header().Name != name {
				t.Errorf("got %v", rr)
			}
			values = append(values, rr.(*dns.TXT).Txt...)
		}
	}
	b, _ := m.Pack()
	var q wire.Query
	var w wire.Reply
	w.Reset(make([]byte, 512))
	if !q.Parse(b) {
		t.Fatal("not eligible")
	}
	if out := c.ServeWire(context.Background(), &w, &q); (out == wire.Block) != passed {
		t.Errorf("the lanes differ: %v", out)
	} else if !passed {
		r := new(dns.Msg)
		if err := r.Unpack(w.Finish(&q, 1232)); err != nil || len(r.Answer) != len(values) || !r.Authoritative {
			t.Errorf("got %v, %v", r, err)
		}
	}
	slices.Sort(values)
	return values, passed
}

// behind is the plugin behind.
type behind struct{}

func (behind) Name() string                                                        { return "behind" }
func (b behind) WireSelf() plugin.Handler                                          { return b }
func (behind) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return 7, nil }
func (behind) ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome    { return wire.Block }

func TestChallenge(t *testing.T) {
	var all challenges
	c := &Challenge{Next: behind{}, of: &all}
	ctx := t.Context()
	one, two := challengeFor("dns.example.org", "one"), challengeFor("dns.example.org", "two")
	const name = "_ACME-challenge.DNS.example.org."
	if _, passed := txt(t, c, name, dns.TypeTXT); !passed {
		t.Error("answers without a challenge")
	}
	for range 2 {
		all.Present(ctx, one)
	}
	all.Present(ctx, two)
	all.Present(ctx, challengeFor("*.example.net", "three"))
	want := []string{one.DNS01KeyAuthorization(), two.DNS01KeyAuthorization()}
	slices.Sort(want)
	if got, _ := txt(t, c, name, dns.TypeTXT); !slices.Equal(got, want) || len(got[0]) != 43 {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, other := range []struct {
		name  string
		qtype uint16
	}{{name, dns.TypeA}, {"dns.example.org.", dns.TypeTXT}, {"_acme-challenge.example.org.", dns.TypeTXT}} {
		if _, passed := txt(t, c, other.name, other.qtype); !passed {
			t.Errorf("%v: answered", other)
		}
	}
	all.CleanUp(ctx, one)
	all.CleanUp(ctx, one)
	if got, _ := txt(t, c, name, dns.TypeTXT); !slices.Equal(got, []string{two.DNS01KeyAuthorization()}) {
		t.Errorf("got %q", got)
	}
	all.CleanUp(ctx, two)
	if _, passed := txt(t, c, name, dns.TypeTXT); !passed {
		t.Error("answers still")
	}
}
