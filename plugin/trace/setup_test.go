package trace

import (
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func TestReadme(t *testing.T) {
	text, err := corefile.ReadmeSyntax("README.md")
	if err != nil || text != directive.Doc().Syntax {
		t.Errorf("%v: the README has\n%s\nwant\n%s", err, text, directive.Doc().Syntax)
	}
}

func TestDirective(t *testing.T) {
	base := defaults()
	with := func(change func(*settings)) settings { s := base; change(&s); return s }
	for text, want := range map[string]settings{
		"trace":                       base,
		"trace localhost:1234":        with(func(s *settings) { s.endpoint = "localhost:1234" }),
		"trace Zipkin localhost:1234": with(func(s *settings) { s.endpoint = "localhost:1234" }),
		"trace datadog localhost":     with(func(s *settings) { s.kind, s.endpoint = "datadog", "localhost" }),
		"trace otlp":                  with(func(s *settings) { s.kind = "otlp" }),
		"trace {\nevery 100\nservice x\nclient_server\nzipkin_max_backlog_size 7\nzipkin_max_batch_size 8\nzipkin_max_batch_interval 9s\n}": with(func(s *settings) {
			s.every, s.service, s.clientServer, s.backlog, s.batch, s.interval = 100, "x", true, 7, 8, 9*time.Second
		}),
		"trace datadog x {\ndatadog_analytics_rate 0.1\nclient_server false\n}": with(func(s *settings) { s.kind, s.endpoint, s.analytics = "datadog", "x", 0.1 }),
	} {
		s := defaults()
		if err := directive.Parse(caddy.NewTestController("dns", text), &s); err != nil || s != want {
			t.Errorf("%q: %v %+v, want %+v", text, err, s, want)
		}
	}
}

func TestEndpoints(t *testing.T) {
	for _, tc := range []struct{ kind, endpoint, url string }{
		{"zipkin", "", "http://localhost:9411/api/v2/spans"},
		{"zipkin", "http://a/b/c", "http://a/b/c"},
		{"datadog", "", "http://localhost:8126/v0.4/traces"},
		{"datadog", "agent", "http://agent:8126/v0.4/traces"},
		{"datadog", "[2001:db8::1]:99", "http://[2001:db8::1]:99/v0.4/traces"},
		{"datadog", "[2001:db8::1]", "http://[2001:db8::1]:8126/v0.4/traces"},
		{"datadog", "2001:db8::1", "http://[2001:db8::1]:8126/v0.4/traces"},
		{"zipkin", "[2001:db8::1]:99", "http://[2001:db8::1]:99/api/v2/spans"},
		{"zipkin", "2001:db8::1", "http://[2001:db8::1]/api/v2/spans"},
		{"otlp", "https://a.example", "https://a.example/v1/traces"},
		{"otlp", "http://a.example:4318/x", "http://a.example:4318/x"},
	} {
		url := ""
		switch to := exporterOf(t, tc.kind, tc.endpoint).(type) {
		case *zipkin:
			url = to.url
		case *datadog:
			url = to.url
		case *otlpHTTP:
			url = to.url
		}
		if url != tc.url {
			t.Errorf("%s %s: %s, want %s", tc.kind, tc.endpoint, url, tc.url)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"trace footype localhost:4321":                     "tracing endpoint type 'footype' is not supported",
		"trace a b c":                                      "usage: trace",
		"trace {\nevery x\n}":                              "strconv.ParseUint",
		"trace {\nclient_server junk\n}":                   "strconv.ParseBool",
		"trace datadog x {\ndatadog_analytics_rate 2\n}":   "datadog analytics rate must be between 0 and 1, '2.000000' is not supported",
		"trace datadog x {\ndatadog_analytics_rate NaN\n}": "datadog analytics rate must be between 0 and 1",
		"trace {\nzipkin_max_backlog_size wrong\n}":        "strconv.Atoi",
		"trace {\nzipkin_max_batch_size 0\n}":              "must be at least 1",
		"trace {\nzipkin_max_batch_interval wrong\n}":      "time: invalid duration",
		"trace {\nzipkin_max_batch_interval 0s\n}":         "must be positive",
		"trace {\nevrey 100\n}":                            "unknown property 'evrey'",
	} {
		if err := setup(caddy.NewTestController("dns", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestSetup(t *testing.T) {
	c := caddy.NewTestController("dns", "trace datadog localhost {\nevery 3\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	tr := dnsserver.GetConfig(c).Plugin[0](nil).(*trace)
	if tr.every != 3 || tr.tags != atTags || tr.Tracer() == nil {
		t.Errorf("%+v", tr)
	}
}

// TestLookedAtOnly looks at a configuration again and again, as reloads do that fail: nothing of it stays.
// A backlog of any size is taken, though not that much memory.
func TestHugeBacklog(t *testing.T) {
	for _, n := range []string{"1000000000000", strconv.Itoa(math.MaxInt)} {
		if strconv.IntSize == 32 {
			n = strconv.Itoa(math.MaxInt)
		}
		if err := setup(caddy.NewTestController("dns", "trace {\nzipkin_max_backlog_size "+n+"\n}")); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
}

func TestLookedAtOnly(t *testing.T) {
	text := caddy.CaddyfileInput{Filepath: "Corefile", ServerTypeName: "dns", Contents: []byte(". {\ntrace otlp\n}")}
	for before, n := runtime.NumGoroutine(), 0; n < 20; n++ {
		if err := dnsserver.Validate(text); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(5 * time.Second); n == 19 && runtime.NumGoroutine() > before+5; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
			}
		}
	}
}
