package xdp

import (
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input string
		want  []string
		err   string
	}{
		{"xdp eth0", []string{"eth0"}, ""},
		{"xdp eth1 eth0 eth1", []string{"eth0", "eth1"}, ""},
		{"xdp", nil, "plugin/xdp: Testfile:1 - Error during parsing: Wrong argument count"},
		{"xdp eth0 {\nqueues 1\n}", nil, "unknown property 'queues'"},
		{"xdp eth0\nxdp eth1", nil, "plugin can only be used once per Server Block"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if got := dnsserver.GetConfig(c).Direct; err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%q: got %v, %v, want %v", tc.input, got, err, tc.want)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
