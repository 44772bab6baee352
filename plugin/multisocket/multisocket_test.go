package multisocket

import (
	"runtime"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input string
		want  int
		err   string
	}{
		{"multisocket", runtime.GOMAXPROCS(0), ""},
		{"multisocket 1", 1, ""},
		{"multisocket 2", 2, ""},
		{"multisocket 1024", 1024, ""},
		{"multisocket 0", 0, "plugin/multisocket: Testfile:1 - Error during parsing: num sockets can not be zero or negative: 0"},
		{"multisocket -1", 0, "num sockets can not be zero or negative: -1"},
		{"multisocket 1025", 0, "num sockets exceeds maximum (1024): 1025"},
		{"multisocket text", 0, "invalid num sockets: "},
		{"multisocket 2 2", 0, "Wrong argument count"},
		{"multisocket 2\nmultisocket 2", 0, "Wrong argument count"},
		{"multisocket 2 {\nblock\n}", 0, "unknown property 'block'"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if got := dnsserver.GetConfig(c).NumSockets; err != nil || got != tc.want {
			t.Errorf("%q: got %d, %v, want %d", tc.input, got, err, tc.want)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
