package template

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func serving(t testing.TB, directives string) Handler {
	t.Helper()
	c := caddy.NewTestController("dns", directives)
	c.ServerBlockKeys = []string{"."}
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	next := plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
		return dns.RcodeNotZone, errors.New("next plugin")
	})
	return dnsserver.GetConfig(c).Plugin[0](next).(Handler)
}

// ask describes what comes for a question "name class type".
func ask(t testing.TB, h Handler, question string) string {
	t.Helper()
	f := strings.Fields(question)
	m := new(dns.Msg).SetQuestion(f[0], dns.StringToType[f[2]])
	m.Question[0].Qclass = dns.StringToClass[f[1]]
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	ctx := metadata.ContextWithMetadata(context.Background())
	metadata.SetValueFunc(ctx, "test/region", func() string { return "north" })
	rcode, err := h.ServeDNS(ctx, rec, m)
	out := "returns " + dns.RcodeToString[rcode] + "\n"
	if err != nil {
		out += "error " + err.Error() + "\n"
	}
	if rec.Msg == nil {
		return out
	}
	out += dns.RcodeToString[rec.Msg.Rcode]
	if rec.Msg.Authoritative {
		out += " aa"
	}
	out += "\n"
	for _, s := range []struct {
		name string
		rrs  []dns.RR
	}{{"answer", rec.Msg.Answer}, {"authority", rec.Msg.Ns}, {"additional", rec.Msg.Extra}} {
		for _, rr := range s.rrs {
			if opt, ok := rr.(*dns.OPT); ok {
				ede := opt.Option[0].(*dns.EDNS0_EDE)
				out += "ede " + dns.ExtendedErrorCodeToString[ede.InfoCode] + " " + ede.ExtraText + "\n"
				continue
			}
			out += s.name + " " + strings.Join(strings.Fields(rr.String()), " ") + "\n"
		}
	}
	return out
}

const addresses = `template IN A example.org {
	match ^ip-(?P<a>[0-9]+)-([0-9]+)[.]
	answer "{{ .Name }} 60 IN A 192.0.{{ .Group.a }}.{{ index .Match 2 }}"
	authority "{{ .Zone }} 60 IN NS ns.{{ .Zone }}"
	additional "ns.{{ .Zone }} 60 IN A 192.0.2.53" "ns.{{ .Zone }} 60 IN AAAA 2001:db8::53"
	fallthrough sub.example.org
}
template IN A example.org {
	match ^fixed
	answer "{{ .Name }} 60 IN A 192.0.2.7"
	answer "  {{ .Name }}		70 IN A 192.0.2.8"
	fallthrough
}
template ANY ANY example.net {
	answer "{{ .Name }} 5 {{ .Class }} TXT \"{{ .Type }} {{ .Question.Name }} {{ .Remote }} {{ .Meta \"test/region\" }}{{ .Meta \"test/none\" }} {{ .Regex }}\""
}
`

func TestAnswers(t *testing.T) {
	for _, tc := range []struct{ name, in, ask, want string }{
		{"sections", addresses, "IP-2-9.example.org. IN A", "returns NOERROR\nNOERROR aa\nanswer ip-2-9.example.org. 60 IN A 192.0.2.9\n" +
			"authority example.org. 60 IN NS ns.example.org.\nadditional ns.example.org. 60 IN A 192.0.2.53\nadditional ns.example.org. 60 IN AAAA 2001:db8::53\n"},
		{"no regex matches", addresses, "other.example.org. IN A", "returns SERVFAIL\n"},
		{"falls through to the next", addresses, "fixed.sub.example.org. IN A", "returns NOERROR\nNOERROR aa\nanswer fixed.sub.example.org. 60 IN A 192.0.2.7\nanswer fixed.sub.example.org. 70 IN A 192.0.2.8\n"},
		{"falls through all", addresses, "other.sub.example.org. IN A", "returns NOTZONE\nerror next plugin\n"},
		{"other type", addresses, "fixed.example.org. IN MX", "returns NOTZONE\nerror next plugin\n"},
		{"other class", addresses, "fixed.example.org. CH A", "returns NOTZONE\nerror next plugin\n"},
		{"other zone", addresses, "fixed.example.com. IN A", "returns NOTZONE\nerror next plugin\n"},
		{"type ANY", addresses, "ip-2-9.example.org. IN ANY", "returns NOERROR\nNOERROR aa\nanswer ip-2-9.example.org. 60 IN A 192.0.2.9\n" +
			"authority example.org. 60 IN NS ns.example.org.\nadditional ns.example.org. 60 IN A 192.0.2.53\nadditional ns.example.org. 60 IN AAAA 2001:db8::53\n"},
		{"data", addresses, "W.example.net. CH MX", "returns NOERROR\nNOERROR aa\nanswer w.example.net. 5 CH TXT \"MX W.example.net. 10.240.0.1 north .*\"\n"},
		{"ANY asks ANY", addresses, "w.example.net. IN ANY", "returns NOERROR\nNOERROR aa\nanswer w.example.net. 5 IN TXT \"ANY w.example.net. 10.240.0.1 north .*\"\n"},
		{"NXDOMAIN is returned", "template IN A {\n rcode NXDOMAIN\n}", "x.example.org. IN A", "returns NXDOMAIN\nNXDOMAIN aa\n"},
		{"REFUSED is written once", "template IN A {\n rcode REFUSED\n ederror 15 \"not here\"\n}", "x.example.org. IN A", "returns NOERROR\nREFUSED aa\nede Blocked not here\n"},
		{"SERVFAIL", "template IN A {\n rcode SERVFAIL\n answer \"a. IN A 192.0.2.1\"\n}", "x.example.org. IN A", "returns SERVFAIL\n"},
		{"SERVFAIL says why", "template IN A {\n rcode SERVFAIL\n ederror 15\n answer \"a. IN A 192.0.2.1\"\n}", "x.example.org. IN A", "returns NOERROR\nSERVFAIL\nede Blocked \n"},
		{"no field", "template IN A {\n answer \"{{ .Nope }} IN A 192.0.2.1\"\n}", "x.example.org. IN A", "returns SERVFAIL\nerror plugin/template: answer \"{{.Nope}} IN A 192.0.2.1\" for x.example.org.: "},
		{"no record", "template IN A {\n authority \"{{ .Name }} IN A {{ .Zone }}\"\n}", "x.example.org. IN A", "returns SERVFAIL\nerror plugin/template: authority \"{{.Name}} IN A {{.Zone}}\" for x.example.org.: "},
		{"no data", "template IN TXT {\n answer \"{{ .Name }} IN {{ .Type }} \"\n}", "x.example.org. IN TXT", "returns SERVFAIL\nerror plugin/template: answer \"{{.Name}} IN {{.Type}} \" for x.example.org.: "},
		{"empty text", "template IN A {\n answer \"{{ if eq .Class `CH` }}{{ .Name }} IN A 192.0.2.1{{ end }}\"\n}", "x.example.org. IN A", "returns NOERROR\nNOERROR aa\n"},
		{"variables", "template IN TXT {\n match ^(?P<n>[0-9]+)[.]\n var num int(group('n'))\n var double num * 2\n var big double > 100\n expr num < 1000\n answer \"{{ .Name }} 1 IN TXT {{ .Var.double }} {{ .Var.big }} {{ parseInt .Group.n 16 64 }}\"\n}",
			"70.example.org. IN TXT", "returns NOERROR\nNOERROR aa\nanswer 70.example.org. 1 IN TXT \"140\" \"true\" \"112\"\n"},
		{"a condition does not hold", "template IN TXT {\n expr false\n fallthrough\n}", "70.example.org. IN TXT", "returns NOTZONE\nerror next plugin\n"},
		{"a condition is no bool", "template IN TXT {\n expr 1\n}", "70.example.org. IN TXT", "returns SERVFAIL\n"},
		{"an expression fails", "template IN TXT {\n var bad incidr('x', '192.0.2.0/24')\n fallthrough\n}", "70.example.org. IN TXT", "returns SERVFAIL\nerror plugin/template: variable bad: "},
		{"no group", "template IN TXT {\n match ^(a)\n var g group(7) + group('x') + group(-1) + group(1)\n answer \"{{ .Name }} 1 IN TXT [{{ .Var.g }}]\"\n}", "a.example.org. IN TXT", "returns NOERROR\nNOERROR aa\nanswer a.example.org. 1 IN TXT \"[a]\"\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := serving(t, tc.in)
			for range 2 { // what is kept answers as what is rendered
				if got := ask(t, h, tc.ask); got != tc.want && !(strings.HasSuffix(tc.want, ": ") && strings.HasPrefix(got, tc.want)) {
					t.Errorf("got\n%s\nwant\n%s", got, tc.want)
				}
			}
		})
	}
}

// A client's words are no directives of master files: $INCLUDE opens none.
func TestOpensNoFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "60"), []byte("read.example.org. 60 IN A 192.0.2.66\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	h := serving(t, "template IN A {\n match ^(?P<host>[^.]+)[.]\n answer \"{{ .Group.host }} 60 IN A 192.0.2.1\"\n}")
	for host, want := range map[string]string{
		"www":      "returns NOERROR\nNOERROR aa\nanswer www. 60 IN A 192.0.2.1\n",
		"$include": "returns SERVFAIL\nerror plugin/template: answer ",
		"$INCLUDE": "returns SERVFAIL\nerror plugin/template: answer ",
	} {
		if got := ask(t, h, host+".example.org. IN A"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", host, got, want)
		}
	}
}

// chain looks up one name.
type chain struct{ asked string }

func (c *chain) Lookup(_ context.Context, _ request.Request, name string, typ uint16) (*dns.Msg, error) {
	c.asked = name + " " + dns.TypeToString[typ]
	if name != "target.example.net." {
		return nil, errors.New("not found")
	}
	rr, _ := dns.NewRR("target.example.net. 5 IN A 192.0.2.1")
	m := new(dns.Msg)
	m.Truncated, m.Answer = true, []dns.RR{rr}
	return m, nil
}

func TestFollow(t *testing.T) {
	h := serving(t, "template IN ANY {\n match ^(.*)[.]example[.]org[.]\n answer \"{{ .Name }} 60 IN CNAME {{ index .Match 1 }}.example.net.\"\n}")
	up := new(chain)
	h.Templates[0].upstream = up
	const cname = "returns NOERROR\nNOERROR aa\nanswer target.example.org. 60 IN CNAME target.example.net.\n"
	if got := ask(t, h, "target.example.org. IN A"); got != cname+"answer target.example.net. 5 IN A 192.0.2.1\n" || up.asked != "target.example.net. A" {
		t.Errorf("asked %q, got\n%s", up.asked, got)
	}
	up.asked = ""
	if got := ask(t, h, "target.example.org. IN MX"); got != cname || up.asked != "" {
		t.Errorf("asked %q, got\n%s", up.asked, got)
	}
	if got := ask(t, h, "x.example.org. IN AAAA"); !strings.Contains(got, "CNAME x.example.net.") || up.asked != "x.example.net. AAAA" {
		t.Errorf("asked %q, got\n%s", up.asked, got)
	}
}

// circle sends what is looked up back to the plugin, as a server does.
type circle struct {
	h     Handler
	times int
}

func (c *circle) Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error) {
	if c.times++; c.times > 100 {
		return nil, errors.New("no end")
	}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	inner := state.NewWithQuestion(name, typ)
	c.h.ServeDNS(ctx, rec, inner.Req)
	return rec.Msg, nil
}

// Aliases that lead in a circle are left at some point, and the client gets what there is, each record once.
func TestFollowCircle(t *testing.T) {
	h := serving(t, "template IN A {\n answer \"{{ .Name }} 60 IN CNAME b.example.org.\"\n}")
	up := &circle{h: h}
	h.Templates[0].upstream = up
	got := ask(t, h, "a.example.org. IN A")
	const want = "returns NOERROR\nNOERROR aa\nanswer a.example.org. 60 IN CNAME b.example.org.\nanswer b.example.org. 60 IN CNAME b.example.org.\n"
	if up.times != upstream.MaxLoops+1 || got != want {
		t.Errorf("%d lookups, got\n%s", up.times, got)
	}
}

var runs atomic.Int32

// Types and classes without a name are counted together: anybody may ask for any of them.
func TestSeriesAreFew(t *testing.T) {
	zone := fmt.Sprintf("few%d.test.", runs.Add(1)) // that of another run has its series
	h := serving(t, "template ANY ANY "+zone+" {\n rcode NXDOMAIN\n}")
	before := testutil.CollectAndCount(matches)
	for typ := range uint16(100) {
		for class := range uint16(10) {
			m := new(dns.Msg).SetQuestion("a."+zone, 40000+typ)
			m.Question[0].Qclass = 40000 + class
			if rcode, err := h.ServeDNS(t.Context(), &test.ResponseWriter{}, m); rcode != dns.RcodeNameError || err != nil {
				t.Fatal(rcode, err)
			}
		}
	}
	if n := testutil.CollectAndCount(matches) - before; n != 1 {
		t.Errorf("%d series for queries of types and classes without a name, want 1", n)
	}
}

// TestKept tells which templates are rendered once for a question, and that records given away are never those kept.
func TestKept(t *testing.T) {
	for text, want := range map[string]bool{
		`{{ .Name }} IN A 192.0.2.1`:                                           false, // a record already
		`www.{{ .Name }} IN A 192.0.2.1`:                                       true,
		`{{ $n := .Zone }}{{ $n }} IN TXT {{ .Type }}{{ if .Class }}{{ end }}`: true,
		`{{ $.Zone }} IN TXT {{ index .Match 0 }} {{ .Group.a }}`:              true,
		`{{ .Name }} IN TXT {{ .Remote }}`:                                     false,
		`{{ .Name }} IN TXT {{ with .Message }}{{ .Id }}{{ end }}`:             false,
		`{{ .Name }} IN TXT {{ . }}`:                                           false,
		`{{ .Name }} IN TXT {{ printf "%v" $ }}`:                               false,
		`{{ .Name }} IN TXT {{ $.Question.Name }}`:                             false,
		`{{ .Name }} IN TXT {{ (index .Match 0) | printf .Var.x }}`:            false,
		`{{ .Name }} IN TXT {{ .Meta "a/b" }}`:                                 false,
	} {
		r, err := newRecord(text)
		if err != nil {
			t.Fatal(err)
		}
		tm := template{sections: [3][]record{{r}}}
		if tm.remember(); (tm.kept != nil) != want {
			t.Errorf("%s: kept %v, want %v", text, tm.kept != nil, want)
		}
	}
	h := serving(t, "template IN A {\n answer \"www.{{ .Name }} 60 IN A 192.0.2.1\"\n}")
	ask(t, h, "a.example.org. IN A")
	if n := h.Templates[0].kept.Len(); n != 1 {
		t.Fatalf("%d questions kept", n)
	}
	d, _, _ := h.Templates[0].match(context.Background(), &request.Request{W: &test.ResponseWriter{}, Req: new(dns.Msg).SetQuestion("a.example.org.", dns.TypeA)})
	one, _ := h.Templates[0].records(d, nil)
	one[answer][0].Header().Ttl = 1
	if two, _ := h.Templates[0].records(d, nil); two[answer][0].Header().Ttl != 60 {
		t.Error("a record that is kept was given away")
	}
}

func TestMetrics(t *testing.T) {
	counts := func() (n [3]float64) {
		n[0] = testutil.ToFloat64(matches.WithLabelValues("", "m.example.org.", "", "IN", "A"))
		n[1] = testutil.ToFloat64(rrFailures.WithLabelValues("", "m.example.org.", "", "IN", "A", "answer", "{{.Name}} 60 IN A {{.Zone}}"))
		n[2] = testutil.ToFloat64(templateFailures.WithLabelValues("", "m.example.org.", "", "IN", "TXT", "answer", "{{.None}}"))
		return n
	}
	before := counts()
	h := serving(t, "template IN A m.example.org {\n answer \"{{ .Name }} 60 IN A {{ .Zone }}\"\n}\ntemplate IN TXT m.example.org {\n answer \"{{ .None }}\"\n}\n")
	ask(t, h, "m.example.org. IN A")
	ask(t, h, "m.example.org. IN TXT")
	after := counts()
	for i, what := range []string{"matches", "failures of records", "failures of templates"} {
		if after[i] != before[i]+1 {
			t.Errorf("%s: %v, before %v", what, after[i], before[i])
		}
	}
}

type passing struct{ passed *bool }

func (p *passing) Name() string             { return "passing" }
func (p *passing) WireSelf() plugin.Handler { return p }
func (p *passing) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return 0, nil
}
func (p *passing) ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome {
	*p.passed = true
	return wire.Done
}

func BenchmarkServeDNS(b *testing.B) {
	h := serving(b, addresses)
	for name, question := range map[string]string{"fixed": "fixed.sub.example.org.", "kept": "ip-2-9.example.org."} {
		m := new(dns.Msg).SetQuestion(question, dns.TypeA)
		w := &test.ResponseWriter{}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if rcode, err := h.ServeDNS(context.Background(), w, m); rcode != 0 || err != nil {
					b.Fatal(rcode, err)
				}
			}
		})
	}
}
