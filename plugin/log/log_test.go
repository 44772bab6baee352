package log

import (
	"bytes"
	"context"
	"errors"
	golog "log"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// capture redirects Go's log for the rest of the test.
func capture(t testing.TB) *bytes.Buffer {
	t.Helper()
	out := new(bytes.Buffer)
	flags := golog.Flags()
	clog.Sync() // what other tests have left is not for this one
	golog.SetOutput(out)
	golog.SetFlags(0)
	t.Cleanup(func() { golog.SetOutput(os.Stderr); golog.SetFlags(flags) })
	return out
}

// replies writes a reply that f fills in.
func replies(f func(*dns.Msg)) test.Handler {
	return test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetReply(r)
		f(m)
		w.WriteMsg(m)
		return m.Rcode, nil
	})
}

func classes(cs ...response.Class) map[response.Class]struct{} {
	m := map[response.Class]struct{}{}
	for _, c := range cs {
		m[c] = struct{}{}
	}
	return m
}

var (
	success = replies(func(m *dns.Msg) { m.Answer = []dns.RR{test.A("www.example.org. 5 IN A 192.0.2.1")} })
	denial  = replies(func(m *dns.Msg) { m.Rcode = dns.RcodeNameError })
	refused = test.NextHandler(dns.RcodeRefused, errors.New("refused"))
	drop    = test.NextHandler(dns.RcodeSuccess, nil)
)

const number = `\d+`

func TestLines(t *testing.T) {
	rewrites := test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		r.Question[0] = dns.Question{Name: "a.much.longer.name.example.net.", Qtype: dns.TypeHINFO, Qclass: dns.ClassCHAOS}
		r.Id = 8
		w.WriteMsg(new(dns.Msg).SetReply(r))
		return dns.RcodeSuccess, nil
	})
	for _, tc := range []struct {
		next test.Handler
		want string
	}{
		{success, `NOERROR qr,rd 64 0\.`},
		{denial, `NXDOMAIN qr,rd 33 0\.`},
		{refused, `REFUSED qr,rd 33 0\.`},
		{drop, `- - 0 0\.`},
		{rewrites, `NOERROR qr,rd 48 0\.`},
	} {
		out := capture(t)
		l := Logger{Next: tc.next, Rules: []Rule{{NameScope: ".", Format: DefaultLogFormat, Class: classes(response.All)}}}
		m := new(dns.Msg).SetQuestion("WWW.example.org.", dns.TypeA)
		m.Id = 7
		l.ServeDNS(t.Context(), &test.ResponseWriter{}, m)
		want := `^\[INFO\] 10\.240\.0\.1:40212 - 7 "A IN www\.example\.org\. udp 33 false 512" ` + tc.want + number + `s\n$`
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("got %q, want %s", out, want)
		}
	}
}

func TestRules(t *testing.T) {
	rules := []Rule{
		{NameScope: "sub.example.org.", Format: "sub {name}", Class: classes(response.Denial)},
		{NameScope: "example.org.", Format: "org {name}", Class: classes(response.Success, response.Error)},
		{NameScope: "example.net.", Format: "net {name}", Class: classes(response.All)},
		{NameScope: "example.com.", Format: "com {name}"}, // no class at all
	}
	for _, tc := range []struct {
		name string
		next test.Handler
		want string
	}{
		{"www.sub.example.org.", denial, "[INFO] sub www.sub.example.org.\n"},
		{"www.sub.example.org.", success, ""}, // the first rule that fits is the only one
		{"SUB.example.org.", denial, "[INFO] sub sub.example.org.\n"},
		{"example.org.", success, "[INFO] org example.org.\n"},
		{"example.org.", refused, "[INFO] org example.org.\n"},
		{"example.org.", drop, "[INFO] org example.org.\n"},
		{"example.org.", denial, ""},
		{"example.net.", denial, "[INFO] net example.net.\n"},
		{"example.com.", success, ""},
		{"example.", success, ""},
	} {
		out := capture(t)
		l := Logger{Next: tc.next, Rules: rules}
		wantRcode, wantErr := tc.next.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion(tc.name, dns.TypeA))
		rcode, err := l.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion(tc.name, dns.TypeA))
		if rcode != wantRcode || (err == nil) != (wantErr == nil) {
			t.Errorf("%s: got %d, %v", tc.name, rcode, err)
		}
		if out.String() != tc.want {
			t.Errorf("%s: logged %q, want %q", tc.name, out, tc.want)
		}
	}
}

func TestMetadata(t *testing.T) {
	out := capture(t)
	ctx := metadata.ContextWithMetadata(t.Context())
	metadata.SetValueFunc(ctx, "view/name", func() string { return "golden" })
	l := Logger{Next: denial, Rules: []Rule{{NameScope: ".", Format: "{/view/name} {/log/type} {/log/class} {/no/such}", Class: classes(response.All)}}}
	l.ServeDNS(ctx, &test.ResponseWriter{}, new(dns.Msg).SetQuestion("example.org.", dns.TypeA))
	if got, want := out.String(), "[INFO] golden NXDOMAIN denial -\n"; got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
	if f := metadata.ValueFunc(ctx, "log/class"); f == nil || f() != "denial" {
		t.Error("log/class is not set")
	}
	if !l.ReadsMetadata() || (Logger{Rules: []Rule{{Format: DefaultLogFormat}}}).ReadsMetadata() {
		t.Error("whether labels are read is not known")
	}
}

func TestSetup(t *testing.T) {
	all := classes(response.All)
	for _, tc := range []struct {
		input string
		want  []Rule
		err   string
	}{
		{"log", []Rule{{".", all, DefaultLogFormat}}, ""},
		{"log example.org", []Rule{{"example.org.", all, DefaultLogFormat}}, ""},
		{"log example.org. {common}", []Rule{{"example.org.", all, CommonLogFormat}}, ""},
		{"log example.org {combined}", []Rule{{"example.org.", all, CombinedLogFormat}}, ""},
		{"log {host}", []Rule{{"{host}.", all, DefaultLogFormat}}, ""},
		{"log example.org {host}", []Rule{{"example.org.", all, "{host}"}}, ""},
		{"log example.org example.net", []Rule{{"example.org.", all, DefaultLogFormat}, {"example.net.", all, DefaultLogFormat}}, ""},
		{"log example.org.\nlog example.net {host}", []Rule{{"example.org.", all, DefaultLogFormat}, {"example.net.", all, "{host}"}}, ""},
		{`log example.org "{when} {common} {/forward/upstream}"`, []Rule{{"example.org.", all, "{when} " + CommonLogFormat + " {/forward/upstream}"}}, ""},
		{"log {\nclass denial\n}", []Rule{{".", classes(response.Denial), DefaultLogFormat}}, ""},
		{"log {\nclass denial error\nclass success\n}", []Rule{{".", classes(response.Denial, response.Error, response.Success), DefaultLogFormat}}, ""},
		{"log a b {when} {\nclass denial\n}", []Rule{{"a.", classes(response.Denial), "{when}"}, {"b.", classes(response.Denial), "{when}"}}, ""},
		{"log {\n}", []Rule{{".", all, DefaultLogFormat}}, ""},

		{"log {\nclass foo\n}", nil, "plugin/log: Testfile:2 - Error during parsing: invalid Class: foo"},
		{"log {\nclass\n}", nil, "Wrong argument count"},
		{"log {\nunknown\n}", nil, "unknown property 'unknown'"},
		{"log { unknown }", nil, "unknown property 'unknown'"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tc.input, err)
			continue
		}
		got := dnsserver.GetConfig(c).Plugin[0](nil).(Logger).Rules
		if !slices.EqualFunc(got, tc.want, func(a, b Rule) bool {
			return a.NameScope == b.NameScope && a.Format == b.Format && len(a.Class) == len(b.Class) && containsAll(a, b)
		}) {
			t.Errorf("%q: got %v, want %v", tc.input, got, tc.want)
		}
	}
}

func containsAll(a, b Rule) bool {
	for c := range a.Class {
		if _, ok := b.Class[c]; !ok {
			return false
		}
	}
	return true
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

func BenchmarkServeDNS(b *testing.B) {
	capture(b)
	golog.SetOutput(discard{})
	l := Logger{Next: test.NextHandler(dns.RcodeSuccess, nil), Rules: []Rule{{NameScope: ".", Format: DefaultLogFormat, Class: classes(response.All)}}}
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	b.ReportAllocs()
	for b.Loop() {
		l.ServeDNS(b.Context(), &test.ResponseWriter{}, m)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
