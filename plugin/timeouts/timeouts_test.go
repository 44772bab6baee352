package timeouts

import (
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		options           string
		read, write, idle time.Duration
		queries           int // 0: none set
	}{
		{"read 30s", 30 * time.Second, 0, 0, 0},
		{"read 1m\nwrite 2m", time.Minute, 2 * time.Minute, 0, 0},
		{"idle 1h", 0, 0, time.Hour, 0},
		{"read 10\nwrite 20\nidle 60", 10 * time.Second, 20 * time.Second, time.Minute, 0},
		{"read 1s\nidle 24h", time.Second, 0, 24 * time.Hour, 0},
		{"maxtcpqueries 128", 0, 0, 0, 128},
		{"maxtcpqueries -1", 0, 0, 0, -1},
		{"read 5s\nread 7s", 7 * time.Second, 0, 0, 0},
		{"read 5s\n}\ntimeouts {\nread 7s\nidle 9s", 7 * time.Second, 0, 9 * time.Second, 0},
	} {
		c := caddy.NewTestController("dns", "timeouts {\n"+tc.options+"\n}")
		if err := setup(c); err != nil {
			t.Errorf("%q: %v", tc.options, err)
			continue
		}
		got := dnsserver.GetConfig(c)
		queries := 0
		if got.MaxTCPQueries != nil {
			queries = *got.MaxTCPQueries
		}
		if got.ReadTimeout != tc.read || got.WriteTimeout != tc.write || got.IdleTimeout != tc.idle || queries != tc.queries {
			t.Errorf("%q: got %v %v %v %d", tc.options, got.ReadTimeout, got.WriteTimeout, got.IdleTimeout, queries)
		}
	}
}

func TestSetupErrors(t *testing.T) {
	const place = "plugin/timeouts: Testfile:2 - Error during parsing: "
	for options, want := range map[string]string{
		"":                       "timeouts block with no timeouts specified",
		"giraffe 30s":            place + "unknown option: 'giraffe'",
		"read":                   "Wrong argument count",
		"read 10s 20s":           "Wrong argument count",
		"write snake":            place + "failed to parse duration 'snake'",
		"idle 0s":                place + "timeout provided '0s' needs to be between 1 second and 24 hours",
		"read 999ms":             "timeout provided '999ms' needs to be between 1 second and 24 hours",
		"read 24h1s":             "timeout provided '24h1s' needs to be between 1 second and 24 hours",
		"maxtcpqueries 0":        place + "maxtcpqueries provided '0' needs to be -1 (unlimited) or a positive integer",
		"maxtcpqueries -2":       "maxtcpqueries provided '-2' needs to be",
		"maxtcpqueries x":        "maxtcpqueries provided 'x' needs to be",
		"read 5s\n}\ntimeouts {": "timeouts block with no timeouts specified",
	} {
		err := setup(caddy.NewTestController("dns", "timeouts {\n"+options+"\n}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", options, err, want)
		}
	}
	for _, input := range []string{"timeouts", "timeouts 5s"} {
		if err := setup(caddy.NewTestController("dns", input)); err == nil {
			t.Errorf("%q: no error", input)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
