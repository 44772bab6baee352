package cache

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// subnet is a client subnet option: a prefix, and the scope that a reply gives to it.
func subnet(prefix string, scope int) *dns.EDNS0_SUBNET {
	p := netip.MustParsePrefix(prefix)
	o := &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: uint8(p.Bits()), SourceScope: uint8(scope), Address: net.IP(p.Addr().AsSlice())}
	if p.Addr().Is6() {
		o.Family = 2
	}
	return o
}

// from makes a query one that names the prefixes.
func from(prefixes ...string) func(*dns.Msg) {
	return func(m *dns.Msg) {
		m.SetEdns0(1232, false)
		for _, p := range prefixes {
			m.IsEdns0().Option = append(m.IsEdns0().Option, subnet(p, 0))
		}
	}
}

// tailors makes the plugin below answer with a record that counts the queries, and with an option that repeats the query's with a scope, -1 for none.
func (w *world) tailors(scope *atomic.Int32) {
	n := 0
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		n++
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{test.A(fmt.Sprintf("www.example.org. 300 IN A 192.0.2.%d", n))}
		if opt := r.IsEdns0(); opt != nil && len(opt.Option) > 0 && scope.Load() >= 0 {
			m.SetEdns0(1232, false)
			o := *opt.Option[0].(*dns.EDNS0_SUBNET)
			o.SourceScope = uint8(scope.Load())
			m.IsEdns0().Option = []dns.EDNS0{&o}
		}
		return 0, rw.WriteMsg(m)
	})
}

// scopeIn is the network that a reply repeats, and the scope that it tells, "none" without them.
func scopeIn(m *dns.Msg) string {
	if data, ok := ecsOf(m.IsEdns0()); ok {
		n, scope, _ := readNetwork(data)
		return fmt.Sprintf("%s/%d", n, scope)
	}
	return "none"
}

// Each step asks with a network, the plugin below having a scope in mind, and tells which answer comes.
func TestNetworks(t *testing.T) {
	type step struct {
		from  string // "" names no network
		scope int
		want  byte // of the answers, by the order in which the plugin below made them
	}
	for name, steps := range map[string][]step{
		"scoped": {
			{"192.0.2.0/24", 24, 1}, {"192.0.2.0/24", 24, 1}, {"192.0.2.7/32", 24, 1}, {"198.51.100.0/24", 24, 2}, {"", 24, 3}, {"192.0.2.0/24", 24, 1}, {"198.51.100.0/24", 24, 2}, {"", 24, 3},
		},
		"no scope told": {
			{"192.0.2.0/24", -1, 1}, {"192.0.2.0/24", -1, 1}, {"192.0.2.7/32", -1, 2}, {"198.51.100.0/24", -1, 3}, {"", -1, 4}, {"192.0.2.0/24", -1, 1},
		},
		"for all": {
			{"192.0.2.0/24", 0, 1}, {"198.51.100.0/24", 24, 1}, {"", -1, 1}, {"2001:db8::/56", 0, 1},
		},
		"for those without": {
			{"", -1, 1}, {"192.0.2.0/24", 24, 2}, {"", -1, 1},
		},
		"shorter than asked": {
			{"192.0.2.0/24", 16, 1}, {"192.0.99.0/24", 16, 1}, {"192.1.2.0/24", 16, 2}, {"192.0.0.0/15", 15, 3},
		},
		"longer than asked": {
			{"192.0.2.0/24", 28, 1}, {"192.0.2.0/24", 28, 1}, {"192.0.2.0/28", 28, 2}, {"192.0.2.0/24", 28, 1},
		},
		"longest match": {
			{"192.0.2.0/24", 16, 1}, {"192.0.0.0/15", 8, 2}, {"192.0.2.0/24", 24, 1}, {"192.77.0.0/24", 24, 2}, {"192.0.0.0/15", 24, 2},
		},
		"families": {
			{"2001:db8::/56", 48, 1}, {"2001:db8:0:100::/56", 48, 1}, {"2001:db8:1::/56", 48, 2}, {"32.1.13.184/32", 24, 3}, {"2001:db8::/56", 48, 1},
		},
		"no network, please": {
			{"0.0.0.0/0", -1, 1}, {"192.0.2.0/24", 24, 2}, {"0.0.0.0/0", 24, 1}, {"", -1, 3}, {"::/0", -1, 4},
		},
	} {
		w := newWorld(t, nil)
		var scope atomic.Int32
		w.tailors(&scope)
		told := map[byte]string{} // by answer: the scope that came with it
		for i, s := range steps {
			scope.Store(int32(s.scope))
			change := func(*dns.Msg) {}
			if s.from != "" {
				change = from(s.from)
			}
			m, _ := w.ask("www.example.org.", dns.TypeA, change)
			if got := m.Answer[0].(*dns.A).A.To4()[3]; got != s.want {
				t.Errorf("%s: step %d, from %q: answer %d, want %d", name, i, s.from, got, s.want)
			}
			if _, seen := told[s.want]; !seen {
				told[s.want] = fmt.Sprint("/", s.scope)
				if s.scope < 0 || s.from == "" {
					told[s.want] = "none"
				}
			}
			want := "none" // who names no network is told of none (RFC 7871 §7.2.2)
			if s.from != "" && told[s.want] != "none" {
				want = s.from + told[s.want]
			}
			if got := scopeIn(m); got != want {
				t.Errorf("%s: step %d, from %q: told %s, want %s", name, i, s.from, got, want)
			}
		}
	}
}

// What names several networks, or whose reply is for another one, is neither looked up nor kept.
// An option whose lengths are more than its family has is none.
func TestReadNetwork(t *testing.T) {
	for data, want := range map[string]bool{
		"\x00\x01\x18\x18\xc0\x00\x02": true, "\x00\x01\x20\x20\xc0\x00\x02\x01": true, "\x00\x01\x21\x00\xc0\x00\x02\x01": false,
		"\x00\x01\x18\x21\xc0\x00\x02": false, "\x00\x02\x80\x80": true, "\x00\x02\x80\x81": false, "\x00\x02\x81\x00": false,
		"\x00\x00\x00\x00": true, "\x00\x00\x00\x01": false, "\x00\x03\x00\x00": false, "\x00\x01\x00": false,
	} {
		if _, scope, ok := readNetwork([]byte(data)); ok != want || ok && scope != data[3] {
			t.Errorf("%x: read %t, scope %d", data, ok, scope)
		}
	}
}

func TestOddNetworks(t *testing.T) {
	w := newWorld(t, nil)
	var scope atomic.Int32
	scope.Store(-1)
	w.tailors(&scope)
	for range 2 {
		w.ask("www.example.org.", dns.TypeA, from("192.0.2.0/24", "198.51.100.0/24"))
	}
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetReply(r)
		m.SetEdns0(1232, false)
		m.IsEdns0().Option = []dns.EDNS0{subnet("203.0.113.0/24", 24)}
		return 0, rw.WriteMsg(m)
	})
	for range 2 {
		w.ask("www.example.org.", dns.TypeA, from("192.0.2.0/24"))
	}
	if n := w.asked.Load(); n != 4 || w.c.positive.len() != 0 {
		t.Errorf("asked %d times, %d kept", n, w.c.positive.len())
	}
}

func TestDenialsOfNetworks(t *testing.T) {
	w := newWorld(t, nil)
	w.says(dns.RcodeNameError, soa900)
	w.ask("www.example.org.", dns.TypeA, from("192.0.2.0/24"))
	w.says(0, "www.example.org. 300 IN A 192.0.2.1")
	if m, _ := w.ask("www.example.org.", dns.TypeA, from("192.0.2.0/24")); m.Rcode != dns.RcodeNameError || w.asked.Load() != 1 {
		t.Errorf("got %v", m)
	}
	if m, _ := w.ask("www.example.org.", dns.TypeA, from("198.51.100.0/24")); m.Rcode != 0 || w.asked.Load() != 2 {
		t.Errorf("got %v", m)
	}
	w.clock.Store(60)
	for range 2 { // the denial's time is over, and the answer takes its place
		if m, _ := w.ask("www.example.org.", dns.TypeA, from("192.0.2.0/24")); m.Rcode != 0 || w.asked.Load() != 3 {
			t.Errorf("got %v", m)
		}
	}
	if p, n := w.c.positive.len(), w.c.negative.len(); p != 2 || n != 0 {
		t.Errorf("%d answers, %d denials", p, n)
	}
}

// What an upstream says for more clients than before takes the place of what it said for few of them, once that has ended: it is not
// given as an old answer again and again, nor asked for.
func TestWiderAnswersOfNetworks(t *testing.T) {
	const asked, other = "192.0.2.7/32", "198.51.100.0/24"
	for name, tc := range map[string]struct {
		scope  int // of what comes when the first answer, for a /24, has ended
		denial bool
		want   [2]int64 // queries to the plugin below until asked has been answered four times more, and other, too
	}{
		"for all":           {0, false, [2]int64{2, 2}},
		"wider":             {16, false, [2]int64{2, 3}},
		"denied for all":    {0, true, [2]int64{2, 2}},
		"denied, and wider": {16, true, [2]int64{2, 3}},
	} {
		for _, verify := range []bool{true, false} {
			w := newWorld(t, func(s *settings) { s.stale, s.verify = time.Hour, verify })
			var scope atomic.Int32
			scope.Store(24)
			w.tailors(&scope)
			w.ask("www.example.org.", dns.TypeA, from(asked))
			var q wire.Query
			m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
			from(asked)(m)
			q.SetMsg(m, wire.Peer{})
			k := w.c.questionOf(&q)
			first := w.c.lookup(&k, w.c.now())
			scope.Store(int32(tc.scope))
			if tc.denial {
				w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
					m := new(dns.Msg).SetRcode(r, dns.RcodeNameError)
					m.Ns = []dns.RR{test.SOA(soa900[3:])}
					m.SetEdns0(1232, false)
					o := *r.IsEdns0().Option[0].(*dns.EDNS0_SUBNET)
					o.SourceScope = uint8(tc.scope)
					m.IsEdns0().Option = []dns.EDNS0{&o}
					return 0, rw.WriteMsg(m)
				})
			}
			w.clock.Store(400)
			w.oneLane = true // while a refresh runs, the lanes give what is there when each of them looks
			for range 3 {
				w.ask("www.example.org.", dns.TypeA, from(asked))
				eventually.Holds(t, "the end of the refresh", func() bool { return len(w.c.refreshes) == 0 })
			}
			w.oneLane = false
			m, _ = w.ask("www.example.org.", dns.TypeA, from(asked))
			if w.c.beginRefresh(first, w.c.countsOf(t.Context())) { // by a query that found it just before
				t.Errorf("%s, verify %v: what has been replaced is fetched again", name, verify)
			}
			if got := w.asked.Load(); got != tc.want[0] {
				t.Errorf("%s, verify %v: %d queries, want %d", name, verify, got, tc.want[0])
			}
			if old := len(m.Answer) > 0 && m.Answer[0].(*dns.A).A.To4()[3] == 1; old {
				t.Errorf("%s, verify %v: the old answer is given when a new one is there", name, verify)
			}
			w.ask("www.example.org.", dns.TypeA, from(other))
			if got := w.asked.Load(); got != tc.want[1] {
				t.Errorf("%s, verify %v: %d queries with those of others, want %d", name, verify, got, tc.want[1])
			}
		}
	}
}

// However many networks ask for one name, a few answers are kept for them, the last ones.
func TestNetworksAreBounded(t *testing.T) {
	w := newWorld(t, nil)
	var scope atomic.Int32
	scope.Store(24)
	w.tailors(&scope)
	w.ask("www.example.org.", dns.TypeA, nil)
	for i := range 3 * maxVariants {
		w.clock.Store(int64(i) / 10)
		w.ask("www.example.org.", dns.TypeA, from(fmt.Sprintf("10.0.%d.0/24", i)))
	}
	if n := w.c.positive.len(); n != maxVariants+1 {
		t.Errorf("%d answers", n)
	}
	before := w.asked.Load()
	for i := 3*maxVariants - 40; i < 3*maxVariants; i++ {
		w.ask("www.example.org.", dns.TypeA, from(fmt.Sprintf("10.0.%d.0/24", i)))
	}
	if n := w.asked.Load() - before; n != 0 {
		t.Errorf("asked %d times for what was kept last", n)
	}
	// Those whose time is over make room.
	w.clock.Store(10000)
	w.ask("www.example.org.", dns.TypeA, from("10.1.0.0/24"))
	if n := w.c.positive.len(); n != 2 {
		t.Errorf("%d answers when their time was over", n)
	}
	w.c.positive.clear()
	if n, left := w.c.positive.len(), w.c.positive.octets.Load(); n != 0 || left != 0 {
		t.Errorf("%d answers, %d octets are counted in an empty store", n, left)
	}
}

func TestStripECS(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.stripECS = true })
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		opt := r.IsEdns0()
		if opt == nil || len(opt.Option) != 1 || opt.Option[0].Option() != dns.EDNS0COOKIE {
			t.Errorf("asked with %v", opt)
		}
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{test.A("www.example.org. 300 IN A 192.0.2.1")}
		return 0, rw.WriteMsg(m)
	})
	for _, p := range []string{"192.0.2.0/24", "198.51.100.0/24"} {
		var r *dns.Msg
		w.ask("www.example.org.", dns.TypeA, func(m *dns.Msg) {
			from(p)(m)
			m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"})
			r = m
		})
		if n := len(r.IsEdns0().Option); n != 2 {
			t.Errorf("the client's query has %d options now", n)
		}
	}
	if w.asked.Load() != 1 {
		t.Errorf("asked %d times", w.asked.Load())
	}
}

// The wire lane keeps networks apart as the message lane does, and gives queries back as they were.
func TestNetworksOnTheWire(t *testing.T) {
	for _, strip := range []bool{false, true} {
		s := &tailor{scope: -1}
		c := New()
		c.Next, c.stripECS = s, strip
		var want [5]byte
		for i, tc := range []struct {
			prefix string
			scope  int
			want   byte
		}{{"192.0.2.0/24", 24, 1}, {"192.0.2.9/32", 24, 1}, {"198.51.100.0/24", -1, 2}, {"198.51.100.7/32", -1, 3}, {"203.0.113.0/24", 24, 4}} {
			s.scope = tc.scope
			m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
			from(tc.prefix)(m)
			p, _ := m.Pack()
			for range 2 {
				var q wire.Query
				if !q.Parse(p) {
					t.Fatal("not eligible")
				}
				var w wire.Reply
				w.Reset(nil)
				if out := c.ServeWire(context.Background(), &w, &q); out != wire.Done || w.Count(wire.Answer) != 1 {
					t.Fatal(out)
				}
				want[i] = tc.want
				if strip {
					want[i] = 1
				}
				if got := w.RData(0)[3]; got != want[i] {
					t.Errorf("strip %v, %s: answer %d, want %d", strip, tc.prefix, got, want[i])
				}
				data, told := w.Option(wire.OptionECS)
				if n, scope, _ := readNetwork(data); told != (!strip && tc.scope >= 0) || told && (n.String() != tc.prefix || int(scope) != tc.scope) {
					t.Errorf("strip %v, %s: told %x, %v", strip, tc.prefix, data, told)
				}
				if q.EDNS().Set&wire.HasECS == 0 || len(q.EDNS().Options) == 0 {
					t.Error("the query was not given back as it was")
				}
			}
		}
		if s.saw == strip {
			t.Errorf("strip %v: the plugin below saw a network: %v", strip, s.saw)
		}
	}
}

// tailor answers in the lane with a count of the queries, and repeats a network with a scope.
type tailor struct {
	source
	n     byte
	scope int
	saw   bool
}

func (s *tailor) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	s.n++
	data, ok := q.EDNS().Option(wire.OptionECS)
	s.saw = s.saw || ok
	w.Begin(q)
	w.Addr(wire.Answer, q.Name(), 300, netip.AddrFrom4([4]byte{192, 0, 2, s.n}))
	if ok && s.scope >= 0 {
		data = append([]byte(nil), data...)
		data[3] = byte(s.scope)
		w.AddOption(wire.OptionECS, data)
		w.CountOPT()
	}
	return wire.Done
}

// Queries of many networks at one time, of which some share an answer.
func TestNetworksConcurrently(t *testing.T) {
	w := newWorld(t, nil)
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		o := *r.IsEdns0().Option[0].(*dns.EDNS0_SUBNET)
		m := new(dns.Msg).SetReply(r)
		a := o.Address.To4()
		m.Answer = []dns.RR{test.A(fmt.Sprintf("www.example.org. 300 IN A 192.0.%d.0", a[2]))}
		m.SetEdns0(1232, false)
		o.SourceScope = 24
		m.IsEdns0().Option = []dns.EDNS0{&o}
		return 0, rw.WriteMsg(m)
	})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 300 {
				m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
				third := (i*7 + g) % 100
				from(fmt.Sprintf("10.0.%d.%d/32", third, i%250))(m)
				rec := dnstest.NewRecorder(&test.ResponseWriter{})
				w.c.ServeDNS(context.Background(), rec, m)
				if rec.Msg == nil || len(rec.Msg.Answer) != 1 || int(rec.Msg.Answer[0].(*dns.A).A.To4()[2]) != third {
					t.Errorf("network %d got %v", third, rec.Msg)
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzNetwork(f *testing.F) {
	f.Add([]byte("\x00\x01\x18\x00\xc0\x00\x02"), uint8(16))
	f.Add([]byte("\x00\x02\x38\x30\x20\x01\x0d\xb8\x00\x00\x01"), uint8(70))
	f.Add([]byte("\x00\x00\x00\x00"), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, bits uint8) {
		n, _, ok := readNetwork(data)
		if !ok {
			return
		}
		if n.family == 0 {
			if n.bits != 0 {
				t.Fatalf("%x: %v", data, n)
			}
			return
		}
		length := map[uint8]int{1: 4, 2: 16}[n.family]
		b := make([]byte, length)
		copy(b, data[4:])
		a, _ := netip.AddrFromSlice(b)
		whole, err := a.Prefix(int(data[2]))
		if err != nil {
			t.Fatalf("%x: we read %v: %v", data, n, err)
		}
		bits = min(bits, n.bits)
		part, _ := a.Prefix(int(bits))
		for _, tc := range []struct {
			n network
			p netip.Prefix
		}{{n, whole}, {n.cut(bits), part}} {
			var got [16]byte
			binary.BigEndian.PutUint64(got[:], tc.n.hi)
			binary.BigEndian.PutUint64(got[8:], tc.n.lo)
			if string(got[:length]) != string(tc.p.Addr().AsSlice()) || int(tc.n.bits) != tc.p.Bits() {
				t.Fatalf("%x: %v is not %v", data, tc.n, tc.p)
			}
		}
		if cut := n.cut(bits); !cut.covers(&n) {
			t.Fatalf("%v does not cover %v", cut, n)
		}
	})
}

func BenchmarkServeWireNetwork(b *testing.B) {
	c := New()
	c.Next = &tailor{scope: 24}
	var p []byte
	var q wire.Query
	var w wire.Reply
	buf := make([]byte, 4096)
	for i := range maxVariants {
		m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		from(fmt.Sprintf("10.0.%d.0/24", i))(m)
		p, _ = m.Pack()
		q.Parse(p)
		q.Arrival = time.Now()
		w.Reset(buf)
		c.ServeWire(context.Background(), &w, &q)
	}
	b.ReportAllocs()
	for b.Loop() {
		q.Parse(p)
		w.Reset(buf)
		if c.ServeWire(context.Background(), &w, &q) != wire.Done {
			b.Fatal("not answered")
		}
		w.Finish(&q, 1232)
	}
}
