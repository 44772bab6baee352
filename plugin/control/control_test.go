package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"control", DefaultSocket + " on"},
		{"control a.sock", "a.sock on"},
		{"control unix:///run/a.sock {\ntop off\n}", "/run/a.sock off"},
		{"control a b", "Wrong argument count"},
		{"control 127.0.0.1:80 {\ntop maybe\n}", "must be one of on, off"},
		{"control http://127.0.0.1", "is no path of a unix socket"},
		{"control :80", "is no path of a unix socket"},
		{"control " + strings.Repeat("x", 100), "at most 90 octets"},
		{"control {\ntops on\n}", "did you mean 'top'?"},
		{"control\ncontrol", "once per Server Block"},
	} {
		s := settings{socket: DefaultSocket, top: true}
		err := directive.Parse(caddy.NewTestController("dns", tc.in), &s)
		got := s.socket + map[bool]string{true: " on", false: " off"}[s.top]
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%q: got %s, want %s", tc.in, got, tc.want)
		}
	}
}

// query is a query for the wire lane.
func query(t testing.TB, name string, qtype uint16, l *eventloop.Loop) *wire.Query {
	t.Helper()
	b, err := new(dns.Msg).SetQuestion(name, qtype).Pack()
	if err != nil {
		t.Fatal(err)
	}
	q := new(wire.Query)
	if !q.Parse(b) {
		t.Fatal("it is not for the wire lane")
	}
	q.Peer.Client = netip.MustParseAddrPort("192.0.2.9:1234")
	q.SetLoop(l)
	return q
}

// answering denies all names below no.test, and unpacks what is below odd.test.
type answering struct{}

func (answering) Name() string               { return "answering" }
func (a answering) WireSelf() plugin.Handler { return a }
func (answering) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	switch name := r.Question[0].Name; {
	case strings.HasSuffix(name, "fail.test."):
		return dns.RcodeServerFailure, errors.New("as asked")
	case strings.HasSuffix(name, "drop.test."):
		return dns.RcodeSuccess, nil
	case strings.HasSuffix(name, "no.test."):
		return dns.RcodeNameError, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNameError))
	}
	return dns.RcodeSuccess, w.WriteMsg(new(dns.Msg).SetReply(r))
}

func (answering) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	switch name := wire.Text(q.Lower()); {
	case strings.HasSuffix(name, "odd.test."):
		return wire.Unpack
	case strings.HasSuffix(name, "fail.test."):
		w.Fail(dns.RcodeServerFailure, errors.New("as asked"))
		return wire.Done
	case strings.HasSuffix(name, "drop.test."):
		w.Drop()
		return wire.Done
	case strings.HasSuffix(name, "no.test."):
		w.Begin(q)
		w.SetRcode(dns.RcodeNameError)
		return wire.Done
	}
	w.Begin(q)
	return wire.Done
}

// An export whose plugin breaks off, or has nothing, fails: a part is not taken for the whole.
func TestExportIsWhole(t *testing.T) {
	soa := test.SOA("example.org. 60 IN SOA ns.example.org. hostmaster.example.org. 7 1 1 1 1")
	a := test.A("www.example.org. 60 IN A 192.0.2.1")
	for _, tc := range []struct {
		what    string
		batches [][]dns.RR
		lines   int
		whole   bool
	}{
		{"whole", [][]dns.RR{{soa}, {a, soa}}, 2, true},
		{"without other records", [][]dns.RR{{soa, soa}}, 1, true},
		{"without its end", [][]dns.RR{{soa}, {a}}, 2, false},
		{"the SOA record alone", [][]dns.RR{{soa}}, 1, false},
		{"without its begin", [][]dns.RR{{a}}, 1, false},
		{"nothing", nil, 0, false},
	} {
		records := make(chan []dns.RR, len(tc.batches))
		for _, b := range tc.batches {
			records <- b
		}
		close(records)
		var out strings.Builder
		if err := writeRecords(&out, records); (err == nil) != tc.whole || strings.Count(out.String(), "\n") != tc.lines {
			t.Errorf("%s: got %v and\n%s", tc.what, err, &out)
		}
	}
}

// Both lanes count the same, and only what was served.
func TestLanesCountTheSame(t *testing.T) {
	names := []string{"a.test.", "A.test.", "x.no.test.", "x.fail.test.", "x.drop.test.", "b.test."}
	count := func(serve func(o observer, name string)) string {
		st := &state{counts: true}
		for _, n := range names {
			serve(observer{answering{}, st}, n)
		}
		var b strings.Builder
		for _, what := range []string{"names", "nxdomain", "clients", "types", "rcodes"} {
			counts, total, show := st.tops.collect(what)
			for _, c := range most(counts, 10) {
				b.WriteString(show(c.key))
				b.WriteString(strings.Repeat("+", int(c.count)) + " ")
			}
			b.WriteString(strings.Repeat("=", int(total)) + "\n")
		}
		return b.String()
	}
	l := eventloop.New()
	defer l.Close()
	inWire := count(func(o observer, name string) {
		l.Enter()
		defer l.Leave()
		for _, n := range []string{name, "x.odd.test."} {
			q := query(t, n, dns.TypeA, l)
			var w wire.Reply
			w.Reset(make([]byte, 512))
			o.ServeWire(context.Background(), &w, q)
		}
	})
	inMessages := count(func(o observer, name string) {
		o.ServeDNS(context.Background(), &test.ResponseWriter{RemoteIP: "192.0.2.9"}, new(dns.Msg).SetQuestion(name, dns.TypeA))
	})
	const want = "a.test.++ b.test.+ x.no.test.+ x.drop.test.+ x.fail.test.+ ======\nx.no.test.+ =\n192.0.2.9++++++ ======\n" +
		"A++++++ ======\nNOERROR+++ NXDOMAIN+ SERVFAIL+ no reply+ ======\n"
	if inWire != want {
		t.Errorf("bytes: got\n%s", inWire)
	}
	if inMessages != want {
		t.Errorf("messages: got\n%s", inMessages)
	}
}

// Nothing is allocated for a query once its loop is known.
func TestServeWireAllocates(t *testing.T) {
	l := eventloop.New()
	defer l.Close()
	o := observer{answering{}, &state{counts: true}}
	q, w, buf := query(t, "a.test.", dns.TypeA, l), new(wire.Reply), make([]byte, 512)
	l.Enter()
	defer l.Leave()
	if n := testing.AllocsPerRun(1000, func() {
		w.Reset(buf)
		o.ServeWire(context.Background(), w, q)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Tails come and go while queries are served; who is too slow loses lines and learns how many.
func TestTails(t *testing.T) {
	var ts tails
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					ts.show(&seen{name: wire.MustName("a.test."), qtype: dns.TypeA, rcode: 0})
				}
			}
		})
	}
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		rec := httptest.NewRecorder()
		m, err := newMatcher(func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		if err := ts.follow(ctx, rec, m, 5); err != nil {
			t.Error(err)
		}
		cancel()
		for line := range strings.Lines(rec.Body.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("line %q", line)
			}
		}
	}
	one, ok := ts.add(matcher{rcode: -1})
	if !ok {
		t.Fatal("there is no place")
	}
	for one.dropped.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(stop)
	wg.Wait()
	for range mostTails - 1 {
		if _, ok := ts.add(matcher{}); !ok {
			t.Error("there is no place")
		}
	}
	if _, ok := ts.add(matcher{}); ok {
		t.Error("there is always place")
	}
	ts.end()
	if _, ok := ts.add(matcher{}); ok || ts.any() {
		t.Error("it goes on after the end")
	}
	<-one.over
}

func TestMatcher(t *testing.T) {
	s := &seen{name: wire.MustName("www.example.org."), qtype: dns.TypeA, client: netip.MustParseAddrPort("192.0.2.9:1"), rcode: 3, took: time.Second}
	for _, tc := range []struct {
		in   string
		want bool
	}{
		{"", true}, {"name=example.org", true}, {"name=Example.ORG.", true}, {"name=example.net", false},
		{"type=a", true}, {"type=TYPE1", true}, {"type=AAAA", false}, {"rcode=nxdomain", true}, {"rcode=NOERROR", false},
		{"client=192.0.2.9", true}, {"client=192.0.2.77/24", true}, {"client=2001:db8::/32", false},
		{"slower=500ms", true}, {"slower=2s", false}, {"failed=true", false},
	} {
		key, value, _ := strings.Cut(tc.in, "=")
		m, err := newMatcher(func(k string) string {
			if k == key {
				return value
			}
			return ""
		})
		if err != nil || m.fits(s) != tc.want {
			t.Errorf("%s: %v, %t", tc.in, err, m.fits(s))
		}
	}
	for _, wrong := range []string{"name=a..b", "type=NONE1", "rcode=x", "client=y", "slower=1", "failed=maybe"} {
		key, value, _ := strings.Cut(wrong, "=")
		if _, err := newMatcher(func(k string) string {
			if k == key {
				return value
			}
			return ""
		}); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

// A client with a link-local address is one of a network, too.
func TestMatcherLinkLocal(t *testing.T) {
	m := matcher{rcode: -1, client: netip.MustParsePrefix("fe80::/10")}
	if !m.fits(&seen{client: netip.MustParseAddrPort("[fe80::1%eth0]:53")}) {
		t.Error("not shown")
	}
}

func BenchmarkServeWire(b *testing.B) {
	for _, counts := range []bool{false, true} {
		b.Run(map[bool]string{false: "off", true: "on"}[counts], func(b *testing.B) {
			l := eventloop.New()
			defer l.Close()
			o := observer{answering{}, &state{counts: counts}}
			q, w, buf := query(b, "a.test.", dns.TypeA, l), new(wire.Reply), make([]byte, 512)
			l.Enter()
			defer l.Leave()
			b.ReportAllocs()
			for b.Loop() {
				w.Reset(buf)
				o.ServeWire(context.Background(), w, q)
			}
		})
	}
}

// What is neither true nor false, and no name of a zone, is refused.
func TestRefused(t *testing.T) {
	a := new(api)
	for _, tc := range []struct {
		query string
		serve func(*http.Request) (any, error)
		want  string
	}{
		{"all=yes", a.cache, `all must be true or false: "yes"`},
		{"all=yes", a.flush, `all must be true or false: "yes"`},
		{"name=a.test&do=1", a.explain, `do must be true or false: "1"`},
		{"name=a..b", a.zones, `name must be a zone: "a..b"`},
	} {
		r, err := http.NewRequest(http.MethodPost, "http://control/?"+tc.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tc.serve(r); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", tc.query, err, tc.want)
		}
	}
}

// A parameter that is none is refused, before anything is done: "tpye=A" would be all types.
func TestUnknownParameters(t *testing.T) {
	h := new(api).handler()
	ask := func(method, target string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
		return w.Code, w.Body.String()
	}
	all := []route{{"GET", "/v1/tail", tailHelp, nil}, {"GET", "/v1/zones/export", exportHelp, nil}}
	for _, r := range append(all, routes...) {
		for query, want := range map[string]string{"?tpye=A": `there is no parameter \"tpye\": ` + r.help, "?name=%zz": "invalid URL escape"} {
			if code, text := ask(r.method, r.path+query); code != http.StatusBadRequest || !strings.Contains(text, want) {
				t.Errorf("%s %s%s: %d %s", r.method, r.path, query, code, text)
			}
		}
	}
	if code, text := ask("POST", "/v1/cache/flush?all=maybe&type=A&name=&zone="); code != http.StatusBadRequest || !strings.Contains(text, "all must be") {
		t.Errorf("those that there are: %d %s", code, text)
	}
}

// Each parameter that the README has for a path is one that the path takes.
func TestParametersOfREADME(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	all, seen := append([]route{{"GET", "/v1/tail", tailHelp, nil}, {"GET", "/v1/zones/export", exportHelp, nil}}, routes...), 0
	parameter := regexp.MustCompile(`([a-z]+)=`)
	for _, line := range strings.Split(string(readme), "\n") {
		for _, r := range all {
			_, rest, found := strings.Cut(line, "`"+r.method+" "+r.path+"?")
			if !found {
				continue
			}
			rest, _, _ = strings.Cut(rest, "|")
			for _, m := range parameter.FindAllStringSubmatch(rest, -1) {
				seen++
				if !strings.Contains(" "+r.help, " "+m[1]+"=") {
					t.Errorf("%s %s refuses %q: its parameters are those of %q", r.method, r.path, m[1], r.help)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d parameters in the README", seen)
	}
}
