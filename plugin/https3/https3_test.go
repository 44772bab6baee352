package https3

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
		want  []int // streams, connections; -1 if not set
	}{
		{"https3", []int{-1, -1}},
		{"https3 {\n}", []int{-1, -1}},
		{"https3 {\nmax_streams 7\n}", []int{7, -1}},
		{"https3 {\nmax_streams 0\n}", []int{0, -1}},
		{"https3 {\nmax_connections 7\n}", []int{-1, 7}},
		{"https3 {\nmax_connections 0\n}", []int{-1, 0}},
		{"https3 {\nmax_streams 3\nmax_connections 4\n}", []int{3, 4}},
		{"https3 {\nmax_streams 5\n}\nhttps3 {\nmax_streams 6\n}", []int{5, -1}},
	} {
		c := caddy.NewTestController("dns", tc.input)
		if err := setup(c); err != nil {
			t.Errorf("%q: %v", tc.input, err)
			continue
		}
		config := dnsserver.GetConfig(c)
		var got []int
		for _, p := range []*int{config.MaxHTTPS3Streams, config.MaxHTTPS3Connections} {
			if p == nil {
				got = append(got, -1)
			} else {
				got = append(got, *p)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q: got %v, want %v", tc.input, got, tc.want)
		}
	}
}

func TestSetupErrors(t *testing.T) {
	for input, want := range map[string]string{
		"https3 extra":                                      "Wrong argument count",
		"https3 {\nunknown_option 1\n}":                     "plugin/https3: Testfile:2 - Error during parsing: unknown property 'unknown_option'",
		"https3 {\nmax_streams\n}":                          "Wrong argument count",
		"https3 {\nmax_streams abc\n}":                      "plugin/https3: Testfile:2 - Error during parsing: invalid max_streams value 'abc'",
		"https3 {\nmax_streams -1\n}":                       "max_streams must be a non-negative integer: -1",
		"https3 {\nmax_streams 1\nmax_streams 1\n}":         "max_streams already defined for this server block",
		"https3 {\nmax_connections\n}":                      "Wrong argument count",
		"https3 {\nmax_connections abc\n}":                  "plugin/https3: Testfile:2 - Error during parsing: invalid max_connections value 'abc': strconv.Atoi: parsing \"abc\": invalid syntax: must be a non-negative integer",
		"https3 {\nmax_connections -1\n}":                   "max_connections must be a non-negative integer: -1",
		"https3 {\nmax_connections 1\nmax_connections 1\n}": "max_connections already defined for this server block",
	} {
		if err := setup(caddy.NewTestController("dns", input)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", input, err, want)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
