package throttle

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

var errFailed = errors.New("failed")

// source replies by the first label: what kind of reply it is to be.
type source struct{ served *int }

func (s source) Name() string             { return "source" }
func (s source) WireSelf() plugin.Handler { return s }

func message(name string, qtype uint16) *dns.Msg {
	m := new(dns.Msg).SetQuestion(name, qtype)
	m.Response = true
	label, zone, _ := strings.Cut(name, ".")
	if zone == "" {
		zone = "."
	}
	soa := []dns.RR{test.SOA(zone + " 60 IN SOA a. b. 1 2 3 4 5")}
	switch {
	case strings.HasPrefix(label, "nx"):
		m.Rcode, m.Ns = dns.RcodeNameError, soa
	case strings.HasPrefix(label, "nodata"):
		m.Ns = soa
	case strings.HasPrefix(label, "referral"):
		m.Ns = []dns.RR{test.NS("sub." + zone + " 60 IN NS ns." + zone)}
	case strings.HasPrefix(label, "refused"):
		m.Rcode = dns.RcodeRefused
	case strings.HasPrefix(label, "fail"), strings.HasPrefix(label, "drop"):
		return nil
	case strings.HasPrefix(label, "empty"):
	default:
		m.Answer = []dns.RR{test.A(name + " 60 IN A 192.0.2.1")}
	}
	return m
}

func (s source) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	*s.served++
	m := message(r.Question[0].Name, r.Question[0].Qtype)
	if m == nil && strings.HasPrefix(r.Question[0].Name, "drop") {
		return dns.RcodeSuccess, nil
	}
	if m == nil {
		return dns.RcodeServerFailure, errFailed
	}
	m.Id = r.Id
	return dns.RcodeSuccess, w.WriteMsg(m)
}

func (s source) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	*s.served++
	m := message(wire.Text(q.Name()), q.Type())
	switch {
	case m == nil && strings.HasPrefix(wire.Text(q.Name()), "drop"):
		w.Drop()
	case m == nil:
		w.Fail(wire.ServFail, errFailed)
	default:
		if err := w.SetMsg(m); err != nil {
			panic(err)
		}
	}
	return wire.Done
}

// server is a Throttle and a clock of its own.
type server struct {
	*Throttle
	served int
	time   time.Time
	wire   bool   // queries come in the wire lane
	cookie string // what clients show, in hexadecimal; "" if nothing
}

// cookies is a server with a secret of cookies.
var cookies = sync.OnceValue(func() *dnsserver.Server {
	s, err := dnsserver.NewServer("dns://127.0.0.1:0", []*dnsserver.Config{{Zone: ".", Cookies: dnsserver.Cookies{Ring: ring}}})
	if err != nil {
		panic(err)
	}
	return s
})

var ring = cookie.NewRing(cookie.Keys{{1, 2, 3}})

// cookieFor is a good cookie for a client.
func cookieFor(client string) string {
	_, c := ring.Judge([]byte("12345678"), netip.MustParseAddr(client), uint32(time.Now().Unix()))
	return hex.EncodeToString(c[:])
}

func serving(t testing.TB, options string, wireLane bool) *server {
	t.Helper()
	c := caddy.NewTestController("dns", "throttle {\n"+options+"\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	s := &server{time: time.Unix(1_700_000_000, 0), wire: wireLane}
	s.Throttle = dnsserver.GetConfig(c).Plugin[0](source{&s.served}).(*Throttle)
	s.now = func() time.Time { return s.time }
	return s
}

// ask is what a client gets, in one word.
func (s *server) ask(t testing.TB, client, network, name string) string {
	t.Helper()
	r := new(dns.Msg).SetQuestion(name, dns.TypeA)
	if s.cookie != "" {
		r.SetEdns0(1232, false)
		r.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: s.cookie}}
	}
	ctx := context.WithValue(t.Context(), dnsserver.Key{}, cookies())
	addr := netip.MustParseAddrPort(netip.AddrPortFrom(netip.MustParseAddr(client), 4711).String())
	var m *dns.Msg
	if s.wire {
		packet, err := r.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var q wire.Query
		var w wire.Reply
		if !q.Parse(packet) {
			t.Fatal("not eligible")
		}
		q.Client, q.Arrival = addr, s.time
		if network == "tcp" {
			q.Proto, q.Peer.Limit = wire.TCP, wire.MaxMessage
		}
		if option, ok := q.EDNS().Option(wire.OptionCookie); ok {
			q.SetCookie(ring.Judge(option, addr.Addr(), uint32(time.Now().Unix())))
		}
		w.Reset(nil)
		if out := s.ServeWire(ctx, &w, &q); out != wire.Done {
			t.Fatalf("%s: %v", name, out)
		}
		switch {
		case w.Failed():
			m = new(dns.Msg).SetRcode(r, w.Rcode())
		case w.Holds():
			if m, err = w.Msg(r); err != nil {
				t.Fatal(err)
			}
		}
	} else {
		w := &peer{remote: net.UDPAddrFromAddrPort(addr)}
		if network == "tcp" {
			w.remote = net.TCPAddrFromAddrPort(addr)
		}
		rec := dnstest.NewRecorder(w)
		rc, _ := s.ServeDNS(ctx, rec, r)
		if m = rec.Msg; !plugin.ClientWrite(rc) {
			m = new(dns.Msg).SetRcode(r, rc)
		}
	}
	switch {
	case m == nil:
		return "nothing"
	case m.Truncated:
		if len(m.Answer)+len(m.Ns) > 0 || m.Rcode != 0 || m.Question[0].Name != name {
			t.Errorf("%s: got %v", name, m)
		}
		return "tc"
	}
	return dns.RcodeToString[m.Rcode]
}

type peer struct {
	test.ResponseWriter
	remote net.Addr
}

func (c *peer) RemoteAddr() net.Addr { return c.remote }

// times asks n times and counts what comes.
func (s *server) times(t testing.TB, n int, client, network string, name func(i int) string) map[string]int {
	t.Helper()
	got := map[string]int{}
	for i := range n {
		got[s.ask(t, client, network, name(i))]++
	}
	return got
}

func same(name string) func(int) string { return func(int) string { return name } }
func each(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

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
		for _, tc := range []struct{ options, reason, action, name string }{
			{"slip 0", "responses", "drop", "www.example.org."}, {"slip 1", "denials", "slip", "nx.example.org."},
			{"observe", "errors", "observe", "refused.example.org."}, {"queries 20\nslip 0", "queries", "drop", "www.example.org."},
			{"queries 20\nobserve\nresponses 0", "queries", "observe", "www.example.org."},
		} {
			c := exceeded.WithLabelValues(cookies().Addr, tc.reason, tc.action)
			before := testutil.ToFloat64(c)
			serving(t, tc.options, lane).times(t, 30, "192.0.2.1", "udp", same(tc.name))
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

// Queries that wait for others count from then on, so that a burst of them does not go through, and are answered when
// what they wait for has ended, however many have come meanwhile.
func TestParked(t *testing.T) {
	for options, want := range map[string]int{"queries 10\nslip 0": 10, "queries 10\nobserve": 30} {
		s := serving(t, options, true)
		c := exceeded.WithLabelValues("", "queries", "observe")
		before, parked := testutil.ToFloat64(c), 0
		run := func(awaited eventloop.Exchange, next plugin.Handler) wire.Outcome {
			packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
			var q wire.Query
			q.Parse(packet)
			q.Client, q.Arrival = netip.MustParseAddrPort("192.0.2.1:53"), s.time
			q.Await(awaited)
			var w wire.Reply
			w.Reset(nil)
			s.Next = next
			return s.ServeWire(t.Context(), &w, &q)
		}
		for range 30 {
			if run(nil, outcome(wire.Park)) == wire.Park {
				parked++
			}
		}
		if counted := testutil.ToFloat64(c) - before; parked != want || counted != float64(want-10) {
			t.Errorf("%q: %d of 30 wait for others, want %d; %v are counted", options, parked, want, counted)
		}
		had := s.served
		for range parked {
			run(new(ended), source{&s.served})
		}
		if got := s.served - had; got != parked {
			t.Errorf("%q: %d of %d are answered", options, got, parked)
		}
	}
}

// ended is an exchange that has ended.
type ended struct{ eventloop.Exchange }

type outcome wire.Outcome

func (o outcome) Name() string             { return "outcome" }
func (o outcome) WireSelf() plugin.Handler { return o }
func (o outcome) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return 0, nil
}
func (o outcome) ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome {
	return wire.Outcome(o)
}

// Errors go up to be logged, also if nothing is sent.
func TestErrorsGoUp(t *testing.T) {
	s := serving(t, "errors 1\nslip 0", false)
	for range 3 {
		if _, err := s.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("fail.example.org.", dns.TypeA)); err != errFailed {
			t.Errorf("message lane: got %v", err)
		}
		packet, _ := new(dns.Msg).SetQuestion("fail.example.org.", dns.TypeA).Pack()
		var q wire.Query
		var w wire.Reply
		q.Parse(packet)
		q.Client = netip.MustParseAddrPort("192.0.2.1:53")
		w.Reset(nil)
		if s.ServeWire(t.Context(), &w, &q); w.Err() != errFailed {
			t.Errorf("wire lane: got %v", w.Err())
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

func TestSetup(t *testing.T) {
	for _, tc := range []struct{ input, err string }{
		{"throttle", ""},
		{"throttle {\nresponses 0\ndenials 100000\nerrors 5\nqueries 5 7\nslip 10\nwindow 1h\nprefix 8 128\nexempt 192.0.2.1 2001:db8::/32\nobserve\n}", ""},
		{"throttle 5", "plugin/throttle: Testfile:1 - Error during parsing: Wrong argument count"},
		{"throttle\nthrottle", "this plugin can only be used once per Server Block"},
		{"throttle {\nresponses -1\n}", "responses must be between 0 and 100000: -1"},
		{"throttle {\nqueries 0\n}", "queries must be between 1 and 100000: 0"},
		{"throttle {\nqueries 5 x\n}", "strconv.Atoi"},
		{"throttle {\nslip 11\n}", "slip must be between 0 and 10: 11"},
		{"throttle {\nwindow 0s\n}", "window must be between 1s and 1h0m0s: 0s"},
		{"throttle {\nprefix 24\n}", "Wrong argument count"},
		{"throttle {\nprefix 33 56\n}", "prefix must be between 8 and 32: 33"},
		{"throttle {\nprefix 24 129\n}", "prefix must be between 16 and 128: 129"},
		{"throttle {\nexempt here\n}", "exempt: "},
		{"throttle {\nrate 5\n}", "unknown property 'rate'"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
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
