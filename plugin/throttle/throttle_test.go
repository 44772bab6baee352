package throttle

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestReplies(t *testing.T) {
	for _, lane := range []bool{false, true} {
		for _, tc := range []struct {
			options, network string
			name             func(int) string
			want             map[string]int // of 100 at once
		}{
			{"", "udp", same("www.example.org."), map[string]int{"NOERROR": 20, "tc": 40, "nothing": 40}},
			{"slip 1", "udp", same("www.example.org."), map[string]int{"NOERROR": 20, "tc": 80}},
			{"slip 0", "udp", same("www.example.org."), map[string]int{"NOERROR": 20, "nothing": 80}},
			{"slip 0\nresponses 5", "udp", same("WWW.example.org."), map[string]int{"NOERROR": 5, "nothing": 95}},
			{"responses 0", "udp", same("www.example.org."), map[string]int{"NOERROR": 100}},
			{"slip 0\ndenials 1", "udp", same("www.example.org."), map[string]int{"NOERROR": 20, "nothing": 80}},
			{"observe", "udp", same("www.example.org."), map[string]int{"NOERROR": 100}},
			{"exempt 192.0.2.0/24", "udp", same("www.example.org."), map[string]int{"NOERROR": 100}},
			{"exempt 192.0.2.2 2001:db8::/32\nslip 0", "udp", same("www.example.org."), map[string]int{"NOERROR": 20, "nothing": 80}},
			{"", "tcp", same("www.example.org."), map[string]int{"NOERROR": 100}},
			{"", "tcp", same("refused.example.org."), map[string]int{"REFUSED": 100}},
			// Other names are other replies, but not if they do not exist.
			{"slip 0", "udp", each("www%d.example.org."), map[string]int{"NOERROR": 100}},
			{"slip 0\ndenials 10", "udp", each("nx%d.example.org."), map[string]int{"NXDOMAIN": 10, "nothing": 90}},
			{"slip 0\ndenials 10", "udp", func(i int) string { return "nx." + []string{"example", "EXAMPLE"}[i%2] + ".org." }, map[string]int{"NXDOMAIN": 10, "nothing": 90}},
			{"slip 0\nresponses 10", "udp", func(i int) string { return "referral." + []string{"example", "EXAMPLE"}[i%2] + ".org." }, map[string]int{"NOERROR": 10, "nothing": 90}},
			{"slip 0\ndenials 10", "udp", each("nx.example%d.org."), map[string]int{"NXDOMAIN": 100}},
			{"slip 0\ndenials 10", "udp", each("nodata%d.example.org."), map[string]int{"NOERROR": 10, "nothing": 90}},
			{"slip 0\nresponses 10", "udp", each("referral%d.example.org."), map[string]int{"NOERROR": 10, "nothing": 90}},
			{"slip 0\nresponses 10", "udp", each("empty%d.example.org."), map[string]int{"NOERROR": 100}},
			{"slip 0\nresponses 10", "udp", same("empty.example.org."), map[string]int{"NOERROR": 10, "nothing": 90}},
			{"slip 0\nerrors 10", "udp", each("refused%d.example.org."), map[string]int{"REFUSED": 10, "nothing": 90}},
			{"slip 1\nerrors 10", "udp", each("fail%d.example.org."), map[string]int{"SERVFAIL": 10, "tc": 90}},
			{"slip 0\nerrors 10", "udp", each("fail%d.example.org."), map[string]int{"SERVFAIL": 10, "nothing": 90}},
			{"errors 10", "udp", each("drop%d.example.org."), map[string]int{"nothing": 100}},
		} {
			s := serving(t, tc.options, lane)
			if got := s.times(t, 100, "192.0.2.1", tc.network, tc.name); fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("wire lane %v, %q, %s over %s: got %v, want %v", lane, tc.options, tc.name(1), tc.network, got, tc.want)
			}
		}
	}
}

// What plugins ask for a query themselves goes to no network, and is no query of the client: its own is counted.
func TestInnerQuestions(t *testing.T) {
	s := serving(t, "responses 1\nqueries 1", false)
	ctx := context.WithValue(context.WithValue(t.Context(), dnsserver.Key{}, cookies()), plugin.InnerKey{}, true)
	for i := range 5 {
		rec := dnstest.NewRecorder(&peer{remote: net.UDPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:4711"))})
		rc, err := s.ServeDNS(ctx, rec, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		if rc != dns.RcodeSuccess || err != nil || rec.Msg == nil || len(rec.Msg.Answer) != 1 {
			t.Fatalf("question %d: got %d, %v, %v", i, rc, err, rec.Msg)
		}
	}
	if got := s.ask(t, "192.0.2.1", "udp", "www.example.org."); got != "NOERROR" {
		t.Errorf("the client's own query: %s", got)
	}
}

// Replies are counted for networks, queries for clients.
func TestNetworks(t *testing.T) {
	for _, lane := range []bool{false, true} {
		for _, tc := range []struct {
			options, first, second string
			shared                 bool
		}{
			{"", "192.0.2.1", "192.0.2.200", true},
			{"", "192.0.2.1", "192.0.3.1", false},
			{"prefix 16 56", "192.0.2.1", "192.0.3.1", true},
			{"prefix 32 56", "192.0.2.1", "192.0.2.2", false},
			{"", "2001:db8:0:1::1", "2001:db8:0:ff::1", true},
			{"", "2001:db8:0:1::1", "2001:db8:0:100::1", false},
			{"prefix 24 64", "2001:db8:0:1::1", "2001:db8:0:ff::1", false},
			{"responses 0\nqueries 20", "192.0.2.1", "192.0.2.2", false},
			{"responses 0\nqueries 20", "192.0.2.1", "192.0.2.1", true},
			{"responses 0\nqueries 20", "2001:db8::1", "2001:db8::2", true},
			{"responses 0\nqueries 20", "2001:db8::1", "2001:db8:0:1::1", false},
		} {
			s := serving(t, "slip 0\n"+tc.options, lane)
			s.times(t, 100, tc.first, "udp", same("www.example.org."))
			if got := s.ask(t, tc.second, "udp", "www.example.org."); (got == "nothing") != tc.shared {
				t.Errorf("wire lane %v, %q: after %s, %s got %s", lane, tc.options, tc.first, tc.second, got)
			}
		}
	}
}

func TestQueries(t *testing.T) {
	for _, lane := range []bool{false, true} {
		for _, tc := range []struct {
			options, network string
			want             map[string]int // of 100 at once
			served           int
		}{
			{"queries 10", "udp", map[string]int{"NOERROR": 10, "tc": 45, "nothing": 45}, 10},
			{"queries 10\nslip 0", "udp", map[string]int{"NOERROR": 10, "nothing": 90}, 10},
			{"queries 10 30\nslip 0", "udp", map[string]int{"NOERROR": 30, "nothing": 70}, 30},
			{"queries 10", "tcp", map[string]int{"NOERROR": 10, "REFUSED": 90}, 10},
			{"queries 10\nobserve", "udp", map[string]int{"NOERROR": 100}, 100},
			{"queries 10\nexempt 192.0.2.1", "tcp", map[string]int{"NOERROR": 100}, 100},
		} {
			s := serving(t, tc.options, lane)
			if got := s.times(t, 100, "192.0.2.1", tc.network, each("www%d.example.org.")); fmt.Sprint(got) != fmt.Sprint(tc.want) || s.served != tc.served {
				t.Errorf("wire lane %v, %q over %s: got %v, %d served, want %v", lane, tc.options, tc.network, got, s.served, tc.want)
			}
		}
	}
}

// Who shows a good cookie gets all replies that he asks for, whatever is asked in his name.
func TestCookies(t *testing.T) {
	const client = "192.0.2.1"
	good := cookieFor(client)
	all, few := fmt.Sprint(map[string]int{"NOERROR": 100}), fmt.Sprint(map[string]int{"NOERROR": 20, "nothing": 80})
	for _, lane := range []bool{false, true} {
		for cookie, want := range map[string]string{"": few, good: all, good[:16]: few, good[:46] + "00": few, cookieFor("192.0.2.2"): few} {
			s := serving(t, "slip 0", lane)
			s.cookie = cookie
			if got := fmt.Sprint(s.times(t, 100, client, "udp", same("www.example.org."))); got != want {
				t.Errorf("wire lane %v, cookie %q: got %s, want %s", lane, cookie, got, want)
			}
			s.cookie = good
			if got := s.ask(t, client, "udp", "www.example.org."); got != "NOERROR" {
				t.Errorf("wire lane %v, with a cookie after %q: got %s", lane, cookie, got)
			}
		}
	}
}

// Queries are bounded for him, too, but not by those that others ask in his name.
func TestCookiesAndQueries(t *testing.T) {
	const client = "192.0.2.1"
	for _, lane := range []bool{false, true} {
		s := serving(t, "slip 0\nqueries 10", lane)
		forged := s.times(t, 100, client, "udp", each("www%d.example.org."))
		s.cookie = cookieFor(client)
		shown := s.times(t, 5, client, "udp", each("www%d.example.org."))
		tcp := s.times(t, 8, client, "tcp", each("www%d.example.org."))
		if got := fmt.Sprint(forged, shown, tcp); got != "map[NOERROR:10 nothing:90] map[NOERROR:5] map[NOERROR:5 REFUSED:3]" {
			t.Errorf("wire lane %v: got %s", lane, got)
		}
	}
}

// Time makes good.
func TestTime(t *testing.T) {
	for _, lane := range []bool{false, true} {
		s := serving(t, "slip 0\nresponses 10\nwindow 2s\nqueries 1000", lane)
		s.times(t, 500, "192.0.2.1", "udp", same("www.example.org."))
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{time.Second, "nothing"}, {500 * time.Millisecond, "nothing"}, {time.Second, "NOERROR"}} {
			s.time = s.time.Add(step.after)
			if got := s.ask(t, "192.0.2.1", "udp", "www.example.org."); got != step.want {
				t.Errorf("wire lane %v, %v later: got %s", lane, step.after, got)
			}
		}
	}
}

func TestTimeOfQueries(t *testing.T) {
	for _, lane := range []bool{false, true} {
		s := serving(t, "slip 0\nresponses 0\nwindow 2s\nqueries 10", lane)
		s.times(t, 500, "192.0.2.1", "udp", same("www.example.org."))
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{1500 * time.Millisecond, "nothing"}, {time.Second, "NOERROR"}} {
			s.time = s.time.Add(step.after)
			if got := s.ask(t, "192.0.2.1", "udp", "www.example.org."); got != step.want {
				t.Errorf("wire lane %v, %v later: got %s", lane, step.after, got)
			}
		}
	}
}

// Replies that differ have accounts that differ.
func TestKeys(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.0"), netip.MustParseAddr("2001:db8::")
	org, net := wire.MustName("example.org."), wire.MustName("example.net.")
	seen := map[uint64]string{}
	for _, f := range []fingerprint{
		{kind: byErrors}, {kind: byDenials}, {kind: byResponses}, {byDenials, org, 0}, {byDenials, net, 0}, {byResponses, org, 0},
		{byResponses, org, dns.TypeA}, {byResponses, org, dns.TypeNS}, {byResponses, net, dns.TypeA}, {byResponses, wire.Root, dns.TypeA},
	} {
		for _, network := range []netip.Addr{a, b} {
			what := fmt.Sprint(f, network)
			k := f.key(network)
			if was, ok := seen[k]; ok {
				t.Errorf("%s and %s are one", was, what)
			}
			seen[k] = what
		}
	}
}

func TestCounters(t *testing.T) {
	for _, lane := range []bool{false, true} {
		for _, tc := range []struct{ options, network, reason, action, name string }{
			{"slip 0", "udp", "responses", "drop", "www.example.org."}, {"slip 1", "udp", "denials", "slip", "nx.example.org."},
			{"observe", "udp", "errors", "observe", "refused.example.org."}, {"queries 20\nslip 0", "udp", "queries", "drop", "www.example.org."},
			{"queries 20\nobserve\nresponses 0", "udp", "queries", "observe", "www.example.org."},
			{"queries 20", "tcp", "queries", "refuse", "www.example.org."}, {"queries 20\nobserve", "tcp", "queries", "observe", "www.example.org."},
		} {
			c := exceeded.WithLabelValues(cookies().Addr, tc.reason, tc.action)
			before := testutil.ToFloat64(c)
			serving(t, tc.options, lane).times(t, 30, "192.0.2.1", tc.network, same(tc.name))
			if got := testutil.ToFloat64(c) - before; got != 10 {
				t.Errorf("wire lane %v, %q: counted %v of 10", lane, tc.options, got)
			}
		}
	}
}

// A query that begins anew elsewhere is charged there alone, and its run leaves no trace.
func TestRuns(t *testing.T) {
	for _, options := range []string{"queries 10\nslip 0", "queries 10\nobserve"} {
		s := serving(t, options, true)
		c := exceeded.WithLabelValues("", "queries", "observe")
		before := testutil.ToFloat64(c)
		for _, out := range []wire.Outcome{wire.Unpack, wire.Block} {
			s.Next = outcome(out)
			for range 20 {
				packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
				var q wire.Query
				q.Parse(packet)
				q.Client, q.Arrival = netip.MustParseAddrPort("192.0.2.1:53"), s.time
				var w wire.Reply
				w.Reset(nil)
				if got := s.ServeWire(t.Context(), &w, &q); got != out {
					t.Fatalf("%v became %v", out, got)
				}
			}
		}
		s.Next = source{&s.served}
		got := s.times(t, 10, "192.0.2.1", "udp", each("www%d.example.org."))
		if got["NOERROR"] != 10 || testutil.ToFloat64(c) != before {
			t.Errorf("%q: got %v", options, got)
		}
	}
}

// Encrypted transports have clients that are who they say, also where they are datagrams.
func TestTransports(t *testing.T) {
	for addr, want := range map[string]bool{"dns://127.0.0.1:0": true, "quic://127.0.0.1:0": false, "https3://127.0.0.1:0": false} {
		s, err := dnsserver.NewServer(addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.WithValue(t.Context(), dnsserver.Key{}, s)
		if got := newState(defaults()).asker(ctx, &wire.Peer{}, wire.CookieNone).forgeable; got != want {
			t.Errorf("%s: forgeable %v", addr, got)
		}
	}
}

// Replies have the same fingerprint in both lanes.
func FuzzFingerprint(f *testing.F) {
	for _, name := range []string{"www.example.org.", "nx.example.org.", "nodata.example.org.", "referral.example.org.", "refused.example.org."} {
		packed, _ := message(name, dns.TypeA).Pack()
		f.Add(packed)
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		m := new(dns.Msg)
		if m.Unpack(packed) != nil || len(m.Question) != 1 || m.Rcode > 15 {
			return
		}
		var q wire.Query
		var w wire.Reply
		w.Reset(nil)
		if q.SetMsg(m, wire.Peer{}) != nil || w.SetMsg(m) != nil || w.Flag(wire.FlagTC) || w.Count(wire.Answer) != len(m.Answer) {
			return
		}
		addr := netip.MustParseAddr("192.0.2.0")
		if x, y := fingerprintOf(&w, &q, nil), fingerprintOfMsg(m, m); x.kind != y.kind || x.key(addr) != y.key(addr) {
			t.Fatalf("%v: %v and %v", m, x, y)
		}
	})
}

func BenchmarkServeWire(b *testing.B) {
	for name, options := range map[string]string{"replies": "responses 100000", "replies and queries": "responses 100000\nqueries 100000", "too many": "responses 1\nslip 0"} {
		b.Run(name, func(b *testing.B) {
			s := serving(b, options, true)
			s.Next = answers{}
			packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
			var q wire.Query
			var w wire.Reply
			q.Parse(packet)
			q.Client, q.Arrival = netip.MustParseAddrPort("192.0.2.1:53"), s.time
			buf := make([]byte, 512)
			b.ReportAllocs()
			for b.Loop() {
				w.Reset(buf)
				s.ServeWire(b.Context(), &w, &q)
			}
		})
	}
}

type answers struct{ outcome }

func (a answers) WireSelf() plugin.Handler { return a }

func (answers) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	w.Begin(q)
	w.Addr(wire.Answer, q.Name(), 60, netip.AddrFrom4([4]byte{192, 0, 2, 1}))
	return wire.Done
}
