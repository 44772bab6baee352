package throttle

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func TestSetup(t *testing.T) {
	for _, tc := range []struct{ input, err string }{
		{"throttle", ""},
		{"throttle {\nresponses 0\ndenials 100000\nerrors 5\nqueries 5 7\nslip 10\nwindow 1h\nprefix 8 128\nexempt 192.0.2.1 2001:db8::/32\nobserve\n}", ""},
		{"throttle 5", "plugin/throttle: Testfile:1 - Error during parsing: Wrong argument count"},
		{"throttle\nthrottle", "this plugin can only be used once per Server Block"},
		{"throttle {\nresponses -1\n}", "responses must be between 0 and 100000: -1"},
		{"throttle {\nqueries 0\n}", "queries must be between 1 and 100000: 0"},
		{"throttle {\nqueries 5 x\n}", "strconv.Atoi"},
		{"throttle {\nslip 11\n}", "slip must be between 0 and 10: 11"},
		{"throttle {\nwindow 0s\n}", "window must be between 1s and 1h0m0s: 0s"},
		{"throttle {\nprefix 24\n}", "Wrong argument count"},
		{"throttle {\nprefix 33 56\n}", "prefix must be between 8 and 32: 33"},
		{"throttle {\nprefix 24 129\n}", "prefix must be between 16 and 128: 129"},
		{"throttle {\nexempt here\n}", "exempt: "},
		{"throttle {\nrate 5\n}", "unknown property 'rate'"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
