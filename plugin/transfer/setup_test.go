package transfer

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func TestSetup(t *testing.T) {
	for _, tc := range []struct{ input, want string }{
		{"transfer {\nto 1.2.3.4 5.6.7.8:1053 [1::2]:34 [fe80::1%eth0]:53\nto *\nsource 2001:db8::53\ntsig Key.example.org hmac-sha512\n}", ""},
		{"transfer", "'to' is required"},
		{"transfer {\nto\n}", "Wrong argument count"},
		{"transfer {\nto ns.example.org\n}", "must specify an IP address: `ns.example.org'"},
		{"transfer {\nto 192.0.2.1:x\n}", "must specify an IP address: `192.0.2.1:x'"},
		{"transfer {\nto *\nsource ns.example.org\n}", `invalid source address "ns.example.org"`},
		{"transfer {\nto *\nsource 192.0.2.1\nsource 192.0.2.2\n}", "source already specified"},
		{"transfer {\nto *\ntsig k md5\n}", `unknown algorithm "md5"`},
		{"transfer {\ninvalid option\n}", `unknown property "invalid"`},
		{"transfer a..b {\nto *\n}", `invalid zone "a..b"`},
	} {
		err := setup(caddy.NewTestController("dns", tc.input))
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "plugin/transfer: ")) {
			t.Errorf("%q: got %v, want %s", tc.input, err, tc.want)
		}
	}
}

func TestReadmeSyntax(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("%v\n%s\nis not\n%s", err, got, directive.Doc().Syntax)
	}
}
