package loadbalance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func write(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSetup(t *testing.T) {
	good := write(t, "www.example.org\n192.0.2.1 3\n")
	for _, tc := range []struct{ in, err string }{
		{"loadbalance", ""},
		{"loadbalance round_robin", ""},
		{"loadbalance {\n prefer 192.0.2.0/24\n}", ""},
		{"loadbalance weighted " + good, ""},
		{"loadbalance weighted " + good + " {\n reload 0s\n}", ""},
		{"loadbalance weighted " + good + " {\n reload 5s\n prefer 2001:db8::/32 192.0.2.1/24\n}", ""},
		{"loadbalance weighted nowhere", ""},
		{"loadbalance weighted nowhere {\n reload 0s\n}", "weight file open error"},
		{"loadbalance best", "unknown policy: best (allowed: round_robin, weighted)"},
		{"loadbalance round_robin a", "unexpected argument(s)"},
		{"loadbalance weighted a b", "unexpected argument(s)"},
		{"loadbalance weighted", "missing weight file argument"},
		{"loadbalance {\n reload 5s\n}", "unknown property for round_robin"},
		{"loadbalance weighted w {\n reload\n}", "reload duration value is missing"},
		{"loadbalance weighted w {\n reload 5s 6s\n}", "unexpected argument"},
		{"loadbalance weighted w {\n reload x\n}", "invalid reload duration 'x'"},
		{"loadbalance weighted w {\n reload -1s\n}", "invalid reload duration '-1s'"},
		{"loadbalance {\n prefer 10.0.0.0\n}", `invalid CIDR "10.0.0.0"`},
		{"loadbalance {\n prefer\n}", "at least one CIDR"},
		{"loadbalance {\n susu\n}", "unknown property 'susu'"},
		{"loadbalance weighted " + write(t, "192.0.2.1\n"), `wrong domain name:"192.0.2.1"`},
	} {
		c := caddy.NewTestController("dns", tc.in)
		err := setup(c)
		switch {
		case tc.err == "" && err != nil:
			t.Errorf("%s: %v", tc.in, err)
		case tc.err == "":
			if n := len(dnsserver.GetConfig(c).Plugin); n != 1 {
				t.Errorf("%s: %d handlers", tc.in, n)
			}
		case err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), "plugin/loadbalance: "):
			t.Errorf("%s: error %v, want %q", tc.in, err, tc.err)
		}
	}
}

// Addresses of records are never mapped into IPv6, so a network that is written so is one of IPv4.
func TestPreferMapped(t *testing.T) {
	s := settings{}
	if err := directive.Parse(caddy.NewTestController("dns", "loadbalance {\n prefer ::ffff:192.0.2.1/120 ::ffff:0:0/90 2001:db8::1/32\n}"), &s); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(s.policy.prefer), "[192.0.2.0/24 ::ffc0:0:0/90 2001:db8::/32]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := directive.Doc().Syntax; got != want {
		t.Errorf("README says\n%s\nthe table says\n%s", got, want)
	}
}
