package tls

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func TestSetupFiles(t *testing.T) {
	mine := pemFiles(t)
	root := filepath.Dir(mine[0])
	two, three := "tls cert.pem key.pem", "tls cert.pem key.pem ca.pem"
	for _, tc := range []struct {
		input string
		auth  tls.ClientAuthType
		err   string
	}{
		{two, tls.NoClientCert, ""},
		{three, tls.NoClientCert, ""},
		{"tls " + strings.Join(mine, " "), tls.NoClientCert, ""},
		{three + " {\nclient_auth nocert\n}", tls.NoClientCert, ""},
		{three + " {\nclient_auth request\n}", tls.RequestClientCert, ""},
		{three + " {\nclient_auth require\n}", tls.RequireAnyClientCert, ""},
		{three + " {\nclient_auth verify_if_given\n}", tls.VerifyClientCertIfGiven, ""},
		{three + " {\nclient_auth require_and_verify\n}", tls.RequireAndVerifyClientCert, ""},
		{three + " {\nclient_auth request\n}\n" + two, tls.NoClientCert, ""},

		{"tls cert.pem", 0, "Wrong argument count or unexpected line ending after 'cert.pem'"},
		{"tls a b c d", 0, "Wrong argument count or unexpected line ending after 'd'"},
		{"tls cert.pem key.pem \"\" {\nclient_auth require_and_verify\n}", 0, `Testfile:1 - Error during parsing: a file without a name: tls ["cert.pem" "key.pem" ""]`},
		{"tls a b", 0, "could not load TLS cert: open " + root + "/a: no such file or directory"},
		{"tls cert.pem key.pem none.pem", 0, "error reading " + root + "/none.pem: "},
		{"tls cert.pem key.pem key.pem", 0, "could not read root certs"},
		{three + " {\nclient_auth foo\n}", 0, "plugin/tls: Testfile:2 - Error during parsing: unknown authentication type 'foo'"},
		{three + " {\nclient_auth\n}", 0, "Wrong argument count"},
		{three + " {\nclient_auth request require\n}", 0, "Wrong argument count"},
		{three + " {\nunknown\n}", 0, "plugin/tls: Testfile:2 - Error during parsing: unknown option 'unknown'"},
		{three + " {\nkeylog\n}", 0, "Wrong argument count"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		dnsserver.GetConfig(c).Root = root
		err := setup(c)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tc.input, err)
			continue
		}
		got := dnsserver.GetConfig(c).TLSConfig
		if got.ClientAuth != tc.auth || got.MinVersion != tls.VersionTLS12 || (got.ClientCAs != nil) != strings.Contains(tc.input, "ca.pem") && !strings.HasSuffix(tc.input, two) {
			t.Errorf("%q: client auth %v, CAs %v", tc.input, got.ClientAuth, got.ClientCAs)
		}
		if cert, err := got.GetCertificate(nil); err != nil || cert.Leaf.Subject.CommonName != "localhost" || len(got.Certificates) > 0 {
			t.Errorf("%q: certificate %v, %v", tc.input, cert, err)
		}
	}
}

// Blocks that share a listener have one certificate, or the file is refused.
func TestBlocksOfOneListener(t *testing.T) {
	mine, other := pemFiles(t), pemFiles(t)
	files := func(of []string) string { return "tls " + of[0] + " " + of[1] }
	acme := func(domains string) string { return "tls {\nacme " + domains + "\n}" }
	for _, tc := range []struct {
		keys          [2]string
		first, second string
		refused       bool
	}{
		{[2]string{"tls://a.example.org", "tls://b.example.org"}, files(mine), files(other), true},
		{[2]string{"tls://a.example.org", "tls://b.example.org"}, files(mine), files(mine) + " {\nclient_auth request\n}", false},
		{[2]string{"tls://a.example.org", "tls://b.example.org"}, files(mine), "", false},
		{[2]string{"tls://a.example.org", "https://b.example.org"}, files(mine), files(other), false},
		{[2]string{"tls://a.example.org:853", "tls://b.example.org:8853"}, files(mine), files(other), false},
		{[2]string{"a.example.org", "b.example.org"}, files(mine), files(other), false}, // tls means nothing there
		{[2]string{"https://a.example.org", "https://b.example.org"}, files(mine), acme("example.org"), true},
		{[2]string{"https://a.example.org", "https://b.example.org"}, acme("example.org example.net"), acme("example.net example.org"), false},
		{[2]string{"https://a.example.org", "https://b.example.org"}, acme("example.org"), acme("example.net"), true},
	} {
		text := tc.keys[0] + " {\n" + tc.first + "\n}\n" + tc.keys[1] + " {\n" + tc.second + "\n}\n"
		err := dnsserver.Validate(caddy.CaddyfileInput{Contents: []byte(text), ServerTypeName: "dns"})
		if (err != nil) != tc.refused || err != nil && !strings.Contains(err.Error(), "a.example.org. and b.example.org. have different certificates") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSetupKeyLog(t *testing.T) {
	mine := pemFiles(t)
	c := caddy.NewTestController("dns", "tls cert.pem key.pem {\nkeylog keys\n}")
	dnsserver.GetConfig(c).Root = filepath.Dir(mine[0])
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	k, ok := dnsserver.GetConfig(c).TLSConfig.KeyLogWriter.(*keyLog)
	if !ok || k.path != filepath.Join(filepath.Dir(mine[0]), "keys") || k.file != nil {
		t.Errorf("got %v", k)
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
