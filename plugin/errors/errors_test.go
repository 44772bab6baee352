package errors

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func fail(text string) test.Handler {
	return test.NextHandler(dns.RcodeServerFailure, errors.New(text))
}

func TestServeDNS(t *testing.T) {
	out := logtest.Capture(t)
	boom := errors.New("boom")
	both := errors.Join(boom, errors.New("bang"))
	peers := errors.New("peer: bye\x1b[2J\r[INFO] x")
	renames := test.HandlerFunc(func(_ context.Context, _ dns.ResponseWriter, r *dns.Msg) (int, error) {
		r.Question[0] = dns.Question{Name: "other.", Qtype: dns.TypeMX, Qclass: dns.ClassINET}
		return dns.RcodeNameError, boom
	})
	for _, tc := range []struct {
		next  test.Handler
		rcode int
		err   error
		want  string
	}{
		{test.NextHandler(dns.RcodeSuccess, nil), dns.RcodeSuccess, nil, ""},
		{test.NextHandler(dns.RcodeServerFailure, nil), dns.RcodeServerFailure, nil, ""},
		{test.NextHandler(dns.RcodeNotAuth, boom), dns.RcodeNotAuth, boom, "[ERROR] plugin/errors: 9 www.example.org. A: boom\n"},
		{renames, dns.RcodeNameError, boom, "[ERROR] plugin/errors: 3 www.example.org. A: boom\n"},
		{test.NextHandler(dns.RcodeServerFailure, both), dns.RcodeServerFailure, both, "[ERROR] plugin/errors: 2 www.example.org. A: boom; bang\n"},
		{test.NextHandler(dns.RcodeServerFailure, peers), dns.RcodeServerFailure, peers, "[ERROR] plugin/errors: 2 www.example.org. A: peer: bye [2J [INFO] x\n"},
	} {
		h := &handler{Next: tc.next}
		rcode, err := h.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("WWW.example.org.", dns.TypeA))
		if rcode != tc.rcode || err != tc.err {
			t.Errorf("got %d, %v, want %d, %v", rcode, err, tc.rcode, tc.err)
		}
		if got := out.Take(); got != tc.want {
			t.Errorf("logged %q, want %q", got, tc.want)
		}
	}
	(&handler{Next: fail("x")}).ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg))
	if got := out.Take(); got != "[ERROR] plugin/errors: 2 . TYPE0: x\n" && got != "[ERROR] plugin/errors: 2 . None: x\n" {
		t.Errorf("no question: logged %q", got)
	}
	(&handler{}).ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("example.org.", dns.TypeA))
	if got := out.Take(); got != "[ERROR] plugin/errors: 2 example.org. A: plugin/errors: no next plugin found\n" {
		t.Errorf("no next plugin: logged %q", got)
	}
}

func TestConsolidate(t *testing.T) {
	out := logtest.Capture(t)
	h := &handler{patterns: []*pattern{
		{expr: regexp.MustCompile("^a"), period: time.Hour, log: logger.Warningf},
		{expr: regexp.MustCompile("^ab|^b"), period: 5 * time.Minute, log: logger.Infof, showFirst: true},
		{expr: regexp.MustCompile("^c"), period: time.Second, log: logger.Errorf, showFirst: true},
	}}
	send := func(texts ...string) {
		for _, text := range texts {
			h.Next = fail(text)
			h.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("example.org.", dns.TypeA))
		}
	}
	send("ab", "a", "ab", "b1", "b2", "c", "d")
	want := "[INFO] plugin/errors: 2 example.org. A: b1\n" +
		"[ERROR] plugin/errors: 2 example.org. A: c\n" +
		"[ERROR] plugin/errors: 2 example.org. A: d\n"
	if got := out.Take(); got != want {
		t.Errorf("logged\n%swant\n%s", got, want)
	}
	h.stop()
	want = "[WARNING] plugin/errors: 3 errors like '^a' occurred in last 1h0m0s\n" +
		"[INFO] plugin/errors: 2 errors like '^ab|^b' occurred in last 5m0s\n" // c remained the only one
	if got := out.Take(); got != want {
		t.Errorf("logged at the end\n%swant\n%s", got, want)
	}
	send("a", "b")
	want = "[ERROR] plugin/errors: 2 example.org. A: a\n[ERROR] plugin/errors: 2 example.org. A: b\n"
	if got := out.Take(); got != want {
		t.Errorf("logged after the end\n%swant\n%s", got, want)
	}
	h.stop()
	if got := out.Take(); got != "" {
		t.Errorf("the second end logged %q", got)
	}
}

// Queries that were given up in a crowd have one line for all, unless a pattern of the block counts them.
func TestCrowd(t *testing.T) {
	for config, want := range map[string]string{
		"errors": "[ERROR] plugin/errors: 2 www.example.org. A: proxy: given up for another query\n" +
			"[ERROR] plugin/errors: 3 errors like 'given up for another query$' occurred in last 1s\n",
		"errors {\nconsolidate 1h ^proxy warning\n}": "[WARNING] plugin/errors: 3 errors like '^proxy' occurred in last 1h0m0s\n",
	} {
		out := logtest.Capture(t)
		c := caddy.NewTestController("dns", config)
		if err := setup(c); err != nil {
			t.Fatal(err)
		}
		h := dnsserver.GetConfig(c).Plugin[0](test.NextHandler(dns.RcodeServerFailure, proxy.ErrGaveWay)).(*handler)
		for range 3 {
			h.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		}
		h.stop()
		if got := out.Take(); got != want {
			t.Errorf("%s: logged %q, want %q", config, got, want)
		}
	}
}

func TestPeriods(t *testing.T) {
	out := logtest.Capture(t)
	const period = 200 * time.Millisecond
	p := &pattern{expr: regexp.MustCompile("x"), period: period, log: logger.Errorf}
	for range 2 {
		if first, ok := p.count(); !first || !ok {
			t.Error("not the first of a period")
		}
		if first, _ := p.count(); first {
			t.Error("the second is taken for the first")
		}
		if got := out.Take(); got != "" {
			t.Errorf("logged %q before the end", got)
		}
		time.Sleep(2 * period)
		if got := out.Take(); got != "[ERROR] plugin/errors: 2 errors like 'x' occurred in last 200ms\n" {
			t.Errorf("logged %q", got)
		}
	}
}

func TestCountFromManyGoroutines(t *testing.T) {
	out := logtest.Capture(t)
	p := &pattern{expr: regexp.MustCompile("x"), period: time.Hour, log: logger.Errorf}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				p.count()
			}
		})
	}
	wg.Wait()
	p.stop()
	if got := out.Take(); !strings.HasPrefix(got, "[ERROR] plugin/errors: 800 errors") {
		t.Errorf("logged %q", got)
	}
}

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input      string
		patterns   int
		stacktrace bool
		err        string
	}{
		{"errors", 0, false, ""},
		{"errors stdout", 0, false, ""},
		{"errors {\nstacktrace\n}", 0, true, ""},
		{"errors {\nstacktrace\nconsolidate 1m ^exact$\n}", 1, true, ""},
		{"errors {\nconsolidate 1m error\nconsolidate 5s \"format error\" info show_first\n}", 2, false, ""},

		{"errors errors.txt", 0, false, "plugin/errors: Testfile:1 - Error during parsing: invalid log file: errors.txt: must be stdout, or left out"},
		{"errors a b", 0, false, "Wrong argument count or unexpected line ending after 'b'"},
		{"errors\nerrors", 0, false, "this plugin can only be used once per Server Block: 'errors' stands at Testfile:1 already"},
		{"errors {\nfoo\n}", 0, false, "Testfile:2 - Syntax error: Unexpected token 'foo', expecting 'Unknown field foo' (allowed: stacktrace, details, consolidate)"},
		{"errors {\nconsolidte 1m x\n}", 0, false, "plugin/errors: Testfile:2 - Syntax error: Unexpected token 'consolidte', expecting 'Unknown field consolidte': did you mean 'consolidate'?"},
		{"errors {\nstacktrace on\n}", 0, false, "Wrong argument count"},
		{"errors {\nconsolidate\n}", 0, false, "Wrong argument count"},
		{"errors {\nconsolidate 1m\n}", 0, false, "Wrong argument count"},
		{"errors {\nconsolidate 1m x error show_first y\n}", 0, false, "Wrong argument count"},
		{"errors {\nconsolidate abc .*\n}", 0, false, `time: invalid duration "abc"`},
		{"errors {\nconsolidate 1 .*\n}", 0, false, "missing unit in duration"},
		{"errors {\nconsolidate 1m ())\n}", 0, false, "error parsing regexp"},
		{"errors {\nconsolidate 1m " + strings.Repeat("x", 10001) + "\n}", 0, false, "regex pattern too long: 10001 > 10000"},
		{"errors {\nconsolidate 1m x extra\n}", 0, false, "unknown option in consolidate: extra"},
		{"errors {\nconsolidate 1m x warning error\n}", 0, false, "multiple log levels specified in consolidate"},
		{"errors {\nconsolidate 1m x show_first warning\n}", 0, false, "log level must come before show_first in consolidate"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%.60q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tc.input, err)
			continue
		}
		config := dnsserver.GetConfig(c)
		h := config.Plugin[0](nil).(*handler)
		if len(h.patterns) != tc.patterns || config.Stacktrace != tc.stacktrace {
			t.Errorf("%q: %d patterns, stacktrace %t", tc.input, len(h.patterns), config.Stacktrace)
		}
	}
}

func TestLevels(t *testing.T) {
	out := logtest.Capture(t)
	for level, want := range map[string]string{"": "[ERROR]", "error": "[ERROR]", "warning": "[WARNING]", "info": "[INFO]"} {
		args := []string{"1m", "x"}
		if level != "" {
			args = append(args, level)
		}
		p, err := parsePattern(args)
		if err != nil {
			t.Fatal(err)
		}
		p.log("text")
		if got := out.Take(); !strings.HasPrefix(got, want) {
			t.Errorf("level %q: logged %q", level, got)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

func BenchmarkNoError(b *testing.B) {
	h := &handler{Next: test.NextHandler(0, nil)}
	m, w := new(dns.Msg).SetQuestion("example.org.", dns.TypeA), &test.ResponseWriter{}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeDNS(b.Context(), w, m)
	}
}
