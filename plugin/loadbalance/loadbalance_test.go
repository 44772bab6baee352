package loadbalance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// records writes its records in both lanes.
type records struct{ sections [3][]dns.RR }

func parse(t testing.TB, sections ...string) *records {
	t.Helper()
	r := new(records)
	for s, text := range sections {
		for line := range strings.Lines(text) {
			rr, err := dns.NewRR(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			if rr != nil {
				r.sections[s] = append(r.sections[s], rr)
			}
		}
	}
	return r
}

func (r *records) Name() string             { return "records" }
func (r *records) WireSelf() plugin.Handler { return r }

func (r *records) ServeDNS(_ context.Context, w dns.ResponseWriter, q *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(q)
	m.Answer, m.Ns, m.Extra = r.sections[0], r.sections[1], r.sections[2]
	return 0, w.WriteMsg(m)
}

func (r *records) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	w.Begin(q)
	for s, rrs := range r.sections {
		for _, rr := range rrs {
			if err := w.RR(wire.Section(s), rr); err != nil {
				panic(err)
			}
		}
	}
	return wire.Done
}

func serving(t testing.TB, directive string, next plugin.Handler) LoadBalance {
	t.Helper()
	c := caddy.NewTestController("dns", directive)
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	return dnsserver.GetConfig(c).Plugin[0](next).(LoadBalance)
}

// lanes asks lb in each lane and returns the sections, a record a line without its TTL and class.
func lanes(t testing.TB, lb LoadBalance, qtype uint16) (message, bytes [3]string) {
	t.Helper()
	m := new(dns.Msg).SetQuestion("www.example.org.", qtype)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if _, err := lb.ServeDNS(context.Background(), rec, m); err != nil || rec.Msg == nil {
		t.Fatalf("message lane: %v, %v", rec.Msg, err)
	}
	message = brief(rec.Msg)

	b, _ := m.Pack()
	q, w := new(wire.Query), new(wire.Reply)
	if !q.Parse(b) {
		t.Fatal("not eligible")
	}
	w.Reset(make([]byte, 0, 4096))
	if out := lb.ServeWire(context.Background(), w, q); out != wire.Done {
		t.Fatalf("wire lane: %v", out)
	}
	reply := new(dns.Msg)
	if err := reply.Unpack(w.End(wire.End{Limit: wire.MaxMessage})); err != nil {
		t.Fatal(err)
	}
	return message, brief(reply)
}

func brief(m *dns.Msg) (sections [3]string) {
	for i, rrs := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range rrs {
			f := strings.Fields(rr.String())
			line := strings.TrimSuffix(f[0], ".example.org.") + " " + f[3] + " " + f[4]
			sections[i] += line + "\n"
		}
	}
	return sections
}

const mixed = `
	www.example.org. 1 IN A 192.0.2.1
	www.example.org. 1 IN RRSIG A 8 3 1 20300101000000 20200101000000 1 example.org. AAAA
	mx.example.org. 1 IN MX 10 a.example.org.
	mx.example.org. 1 IN MX 20 b.example.org.
	www.example.org. 1 IN TXT first
	www.example.org. 1 IN RRSIG TXT 8 3 1 20300101000000 20200101000000 1 example.org. AAAA
	www.example.org. 1 IN AAAA 2001:db8::1
	x.example.org. 1 IN CNAME y.example.org.
	x.example.org. 1 IN RRSIG CNAME 8 3 1 20300101000000 20200101000000 1 example.org. AAAA
	y.example.org. 1 IN CNAME www.example.org.
	www.example.org. 1 IN A 192.0.2.2`

func TestShuffle(t *testing.T) {
	lb := serving(t, "loadbalance", parse(t, mixed, mixed, mixed))
	group := func(lines []string, from, to int) string {
		g := slices.Clone(lines[from:to])
		slices.Sort(g)
		return strings.Join(g, ",")
	}
	seen := [2]map[string]int{{}, {}}
	const rounds = 1200
	for range rounds {
		message, bytes := lanes(t, lb, dns.TypeA)
		for lane, sections := range [2][3]string{message, bytes} {
			seen[lane][sections[0]]++
			for _, s := range sections {
				l := strings.Split(strings.TrimSpace(s), "\n")
				got := strings.Join(l[:5], ",") + "," + group(l, 5, 8) + "," + l[8] + "," + group(l, 9, 11)
				want := "x CNAME y.example.org.,x RRSIG CNAME,y CNAME www.example.org.,www TXT \"first\",www RRSIG TXT," +
					"www A 192.0.2.1,www A 192.0.2.2,www AAAA 2001:db8::1,www RRSIG A,mx MX 10,mx MX 20"
				if got != want {
					t.Fatalf("lane %d: got\n%s\nwant\n%s", lane, got, want)
				}
			}
		}
	}
	for lane, orders := range seen { // 6 orders of addresses and 2 of MX records
		if len(orders) != 12 {
			t.Errorf("lane %d: %d different orders, want 12", lane, len(orders))
		}
		for _, n := range slices.Collect(maps.Values(orders)) {
			if n < rounds/12/2 || n > rounds/12*2 {
				t.Errorf("lane %d: an order came %d times of %d", lane, n, rounds)
			}
		}
	}
}

func TestLeftAlone(t *testing.T) {
	next := parse(t, "www.example.org. 1 IN A 192.0.2.1\nwww.example.org. 1 IN A 192.0.2.2\nwww.example.org. 1 IN CNAME x.example.org.")
	given := slices.Clone(next.sections[0])
	lb := serving(t, "loadbalance", next)
	for _, qtype := range []uint16{dns.TypeAXFR, dns.TypeIXFR} {
		m := new(dns.Msg).SetQuestion("www.example.org.", qtype)
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		lb.ServeDNS(context.Background(), rec, m)
		if s := brief(rec.Msg)[0]; !strings.HasSuffix(s, "CNAME x.example.org.\n") {
			t.Errorf("a transfer was reordered:\n%s", s)
		}
	}
	for range 20 {
		lanes(t, lb, dns.TypeA)
		if !slices.Equal(next.sections[0], given) {
			t.Fatal("the slice of whoever wrote was reordered")
		}
	}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	m.Rcode, m.Answer = dns.RcodeRefused, next.sections[0]
	(&LoadBalanceResponseWriter{ResponseWriter: rec}).WriteMsg(m)
	if s := brief(rec.Msg)[0]; !strings.HasSuffix(s, "CNAME x.example.org.\n") {
		t.Errorf("an error reply was reordered:\n%s", s)
	}
}

func TestPrefer(t *testing.T) {
	lb := serving(t, "loadbalance round_robin {\n prefer 192.0.2.2/32 2001:db8::/32\n prefer 192.0.2.0/24\n}", parse(t, mixed+"\nother.example.org. 1 IN A 198.51.100.1", mixed))
	want := `x CNAME y.example.org.
x RRSIG CNAME
y CNAME www.example.org.
www A 192.0.2.2
www AAAA 2001:db8::1
www A 192.0.2.1
other A 198.51.100.1
www RRSIG A
`
	for range 20 {
		message, bytes := lanes(t, lb, dns.TypeTXT)
		for lane, got := range [][3]string{message, bytes} {
			if !strings.HasPrefix(got[0], want) || !strings.HasSuffix(got[0], "www TXT \"first\"\nwww RRSIG TXT\n") {
				t.Fatalf("lane %d:\n%s\nwant:\n%s", lane, got[0], want)
			}
			if strings.HasSuffix(got[1], "RRSIG TXT\n") {
				t.Fatalf("lane %d: authority is ordered as for clients:\n%s", lane, got[1])
			}
		}
	}
}

func TestWeighted(t *testing.T) {
	file := write(t, "WWW.example.org\n192.0.2.2 8\n2001:db8::1 1 # as default\n\n# nobody\nx.example.org\n192.0.2.1 255\n")
	lb := serving(t, "loadbalance weighted "+file, parse(t, mixed, mixed, mixed))
	var first [2]map[string]int
	first[0], first[1] = map[string]int{}, map[string]int{}
	const rounds = 1000
	for range rounds {
		message, bytes := lanes(t, lb, dns.TypeA)
		for lane, got := range [][3]string{message, bytes} {
			first[lane][strings.Split(got[0], "\n")[5]]++
			first[lane]["additional "+strings.Split(got[2], "\n")[5]]++
			if !strings.HasPrefix(got[1], "www A 192.0.2.1\n") {
				t.Fatalf("lane %d: authority was reordered:\n%s", lane, got[1])
			}
			if !strings.HasSuffix(got[0], "mx MX 10\nmx MX 20\n") {
				t.Fatalf("lane %d: MX records were shuffled:\n%s", lane, got[0])
			}
		}
	}
	for lane, f := range first {
		for _, section := range []string{"", "additional "} {
			if n := f[section+"www A 192.0.2.2"]; n < rounds*70/100 || n > rounds*90/100 {
				t.Errorf("lane %d: %d of %d begin with the address of weight 8 of 10", lane, n, rounds)
			}
			for _, a := range []string{"A 192.0.2.1", "AAAA 2001:db8::1"} {
				if n := f[section+"www "+a]; n < rounds*5/100 || n > rounds*15/100 {
					t.Errorf("lane %d: %d of %d begin with %s of weight 1 of 10", lane, n, rounds, a)
				}
			}
		}
	}
	message, bytes := lanes(t, lb, dns.TypeMX)
	for lane, got := range [][3]string{message, bytes} {
		if !strings.HasPrefix(got[0], "www A 192.0.2.1\nwww RRSIG A\nmx MX 10\n") {
			t.Errorf("lane %d: a question for MX was reordered:\n%s", lane, got[0])
		}
	}
}

func TestWeightedPrefer(t *testing.T) {
	file := write(t, "www.example.org\n192.0.2.2 255\n")
	lb := serving(t, "loadbalance weighted "+file+" {\n prefer 2001:db8::/32\n}", parse(t, mixed))
	late := 0
	for range 50 {
		message, bytes := lanes(t, lb, dns.TypeA)
		for _, got := range [][3]string{message, bytes} {
			l := strings.Split(got[0], "\n")
			if l[3] != "www AAAA 2001:db8::1" {
				t.Fatalf("not in the preferred network: %s", l[3])
			}
			if l[4] != "www A 192.0.2.2" {
				late++
			}
		}
	}
	if late > 10 {
		t.Errorf("the heaviest of the others was not their first %d times of 100", late)
	}
}

// A reply of the wire lane is put into order without an allocation.
func TestEditAllocatesNothing(t *testing.T) {
	src := parse(t, "www.example.org. 1 IN A 192.0.2.1\nwww.example.org. 1 IN A 192.0.2.2\nwww.example.org. 1 IN A 192.0.2.3\n")
	packed, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	q, w := new(wire.Query), new(wire.Reply)
	q.Parse(packed)
	w.Reset(make([]byte, 0, 4096))
	src.ServeWire(context.Background(), w, q)
	lb := serving(t, "loadbalance", nil)
	// The collector may empty the pool, and the race detector leaves out some of what is put there.
	if n := testing.AllocsPerRun(1000, func() { lb.Edit(w, q) }); n > 2 { // without the pool there are six
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkShuffle(b *testing.B) {
	for _, n := range []int{1, 2, 10, 100} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "www.example.org. 1 IN A 192.0.2.%d\n", i+1)
		}
		lb := serving(b, "loadbalance", nil)
		src := parse(b, text.String())
		m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		packed, _ := m.Pack()
		q, w := new(wire.Query), new(wire.Reply)
		q.Parse(packed)
		w.Reset(make([]byte, 0, 4096))
		src.ServeWire(context.Background(), w, q)
		o := new(order)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o.reply(w, lb.policy, dns.TypeA)
			}
		})
	}
}

// The signature of a message stays its last record, whatever the policy.
func TestSignatureStaysLast(t *testing.T) {
	for _, directive := range []string{"loadbalance", "loadbalance {\nprefer 192.0.2.0/24\n}"} {
		lb := serving(t, directive, nil)
		for range 20 {
			m := new(dns.Msg).SetQuestion("example.org.", dns.TypeMX)
			m.Answer = []dns.RR{test.MX("example.org. 5 IN MX 1 a.example.org."), test.MX("example.org. 5 IN MX 1 b.example.org.")}
			m.Extra = []dns.RR{test.A("a.example.org. 5 IN A 192.0.2.1"), test.A("b.example.org. 5 IN A 192.0.2.2")}
			m.SetEdns0(1232, false)
			m.SetTsig("key.", dns.HmacSHA256, 300, 1)
			if m = lb.EditMsg(m, nil); m.IsTsig() == nil || m.IsEdns0() == nil || len(m.Extra) != 4 {
				t.Fatalf("%s: got %v", directive, m.Extra)
			}
		}
	}
}
