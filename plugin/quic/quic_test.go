package quic

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
		want  []int // streams, workers, connections; -1 if not set
	}{
		{"quic", []int{-1, -1, -1}},
		{"quic {\n}", []int{-1, -1, -1}},
		{"quic {\nmax_streams 7\n}", []int{7, -1, -1}},
		{"quic {\nworker_pool_size 7\n}", []int{-1, 7, -1}},
		{"quic {\nmax_connections 7\n}", []int{-1, -1, 7}},
		{"quic {\nmax_connections 0\n}", []int{-1, -1, 0}},
		{"quic {\nmax_streams 3\nworker_pool_size 4\nmax_connections 5\n}", []int{3, 4, 5}},
		{"quic {\nmax_streams 5\n}\nquic {\nmax_streams 6\n}", []int{5, -1, -1}},
	} {
		c := caddy.NewTestController("dns", tc.input)
		if err := setup(c); err != nil {
			t.Errorf("%q: %v", tc.input, err)
			continue
		}
		config := dnsserver.GetConfig(c)
		var got []int
		for _, p := range []*int{config.MaxQUICStreams, config.MaxQUICWorkerPoolSize, config.MaxQUICConnections} {
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
		"quic extra":                                        "Wrong argument count",
		"quic {\nunknown_option 1\n}":                       "plugin/quic: Testfile:2 - Error during parsing: unknown property 'unknown_option'",
		"quic {\nmax_streams\n}":                            "Wrong argument count",
		"quic {\nmax_streams abc\n}":                        "plugin/quic: Testfile:2 - Error during parsing: invalid max_streams value 'abc'",
		"quic {\nmax_streams 0\n}":                          "max_streams must be a positive integer: 0",
		"quic {\nmax_streams 1\nmax_streams 1\n}":           "max_streams already defined for this server block",
		"quic {\nworker_pool_size\n}":                       "Wrong argument count",
		"quic {\nworker_pool_size abc\n}":                   "plugin/quic: Testfile:2 - Error during parsing: invalid worker_pool_size value 'abc'",
		"quic {\nworker_pool_size 0\n}":                     "worker_pool_size must be a positive integer: 0",
		"quic {\nworker_pool_size 1\nworker_pool_size 1\n}": "worker_pool_size already defined for this server block",
		"quic {\nmax_connections\n}":                        "Wrong argument count",
		"quic {\nmax_connections abc\n}":                    "plugin/quic: Testfile:2 - Error during parsing: invalid max_connections value 'abc'",
		"quic {\nmax_connections -1\n}":                     "max_connections must be a non-negative integer: -1",
		"quic {\nmax_connections 1\nmax_connections 1\n}":   "max_connections already defined for this server block",
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
