package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// sleeper waits for an exchange.
type sleeper chan struct{}

func (s sleeper) Resume() { s <- struct{}{} }

// serveWire runs one query in the wire lane, as often as it is parked, and returns the reply, nil if there is none.
func serveWire(t testing.TB, f plugin.WireHandler, peer wire.Peer, r *dns.Msg) (m *dns.Msg, rcode, parked int, err error) {
	t.Helper()
	packet, rcode, parked, err := packetWire(t, f, peer, r)
	if packet == nil {
		return nil, rcode, parked, err
	}
	m = new(dns.Msg)
	if err := m.Unpack(packet); err != nil {
		t.Fatal(err)
	}
	return m, m.Rcode, parked, err
}

// packetWire is serveWire for a reply as a packet.
func packetWire(t testing.TB, f plugin.WireHandler, peer wire.Peer, r *dns.Msg) (reply []byte, rcode, parked int, err error) {
	t.Helper()
	packet, perr := r.Pack()
	if perr != nil {
		t.Fatal(perr)
	}
	var ended eventloop.Exchange
	for {
		var q wire.Query
		var w wire.Reply
		if !q.Parse(packet) {
			t.Fatalf("not eligible: %v", r)
		}
		q.Peer = peer
		q.Await(ended)
		w.Reset(make([]byte, 0, 1500))
		switch out := f.ServeWire(context.Background(), &w, &q); {
		case out == wire.Done && w.Failed():
			return nil, w.Rcode(), parked, w.Err()
		case out == wire.Done:
			return w.Finish(&q, 1232), w.Rcode(), parked, w.Err()
		case out == wire.Park && q.Awaited() != ended:
			parked++
			ended = q.Awaited()
			s := make(sleeper, 1)
			ended.Then(s)
			<-s
		default:
			t.Fatalf("came out as %v", out)
		}
	}
}

var client = wire.Peer{}

// answeredWire is answered for the wire lane.
func answeredWire(t testing.TB, f plugin.WireHandler, name string) string {
	m, rcode, _, err := serveWire(t, f, client, new(dns.Msg).SetQuestion(name, dns.TypeA))
	switch {
	case m != nil && len(m.Answer) == 1:
		return m.Answer[0].(*dns.A).A.String()
	case m != nil:
		return dns.RcodeToString[m.Rcode]
	}
	return fmt.Sprintf("%s %v", dns.RcodeToString[rcode], err)
}

// Both lanes say the same, and the upstream is asked the same.
func TestLanesAgree(t *testing.T) {
	var asked atomic.Pointer[dns.Msg]
	addr := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		asked.Store(r.Copy())
		m := new(dns.Msg).SetReply(r)
		m.RecursionAvailable, m.Compress = true, true
		name := r.Question[0].Name
		switch first, _, _ := strings.Cut(strings.ToLower(name), "."); first {
		case "alias":
			m.Answer = []dns.RR{test.CNAME(name + " 60 IN CNAME a.example.com."), test.A("a.example.com. 61 IN A 192.0.2.1")}
		case "mail":
			m.Answer = []dns.RR{test.MX(name + " 60 IN MX 10 mx." + name), test.MX(name + " 60 IN MX 20 mx2." + name)}
			m.Extra = []dns.RR{test.A("mx." + name + " 60 IN A 192.0.2.1")}
		case "denied":
			m.Rcode = dns.RcodeNameError
			m.Ns = []dns.RR{test.SOA("example.org. 60 IN SOA a.example.org. b.example.org. 1 2 3 4 5")}
		case "naptr":
			rr, _ := dns.NewRR(name + ` 60 IN NAPTR 1 2 "u" "x" "!a!b!" .`)
			m.Answer = []dns.RR{rr}
		case "extended":
			m.SetEdns0(1232, false)
			m.Rcode = dns.RcodeBadCookie
		case "cut":
			m.Truncated = true
		case "refused":
			m.Rcode = dns.RcodeRefused
		case "repeated":
			m.Question[0].Name = strings.ToUpper(name)
			m.Opcode, m.Zero, m.RecursionDesired, m.CheckingDisabled = dns.OpcodeStatus, true, false, !r.CheckingDisabled
		}
		if opt := r.IsEdns0(); opt != nil && m.IsEdns0() == nil {
			m.SetEdns0(4096, opt.Do())
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: 3, ExtraText: "x"}}
		}
		w.WriteMsg(m)
	})
	f := configured(t, "forward . "+addr)
	for _, name := range []string{"Alias.example.org.", "mail.example.org.", "denied.example.org.", "naptr.example.org.", "extended.example.org.", "cut.example.org.", "refused.example.org.", "empty.example.org.", "repeaTed.example.org."} {
		for size, flags := range map[uint16]bool{0: false, 1232: true, 512: false} {
			r := new(dns.Msg).SetQuestion(name, dns.TypeANY-1)
			r.Question[0].Qtype = dns.TypeMX
			r.CheckingDisabled = flags
			if size > 0 {
				r.SetEdns0(size, flags)
			}
			m, rcode, err := serve(f, &test.ResponseWriter{}, r)
			if err != nil || rcode != 0 {
				t.Fatal(rcode, err)
			}
			want := asked.Load()
			got, _, parked, err := serveWire(t, f, client, r)
			if err != nil || parked > 1 { // the reply may be quick
				t.Fatalf("%s: parked %d times, %v", name, parked, err)
			}
			question := asked.Load()
			if question.Id = want.Id; question.String() != want.String() {
				t.Errorf("%s: the upstream saw\n%v\nand in the wire lane\n%v", name, want, question)
			}
			if size == 0 && m.Rcode > 0xF {
				m.Rcode = dns.RcodeServerFailure // the server sees to that
			}
			m.Extra, got.Extra = withoutOPT(m.Extra), withoutOPT(got.Extra)
			if m.String() != got.String() {
				t.Errorf("%s: message lane\n%v\nwire lane\n%v", name, m, got)
			}
		}
	}
}

func withoutOPT(rrs []dns.RR) (out []dns.RR) {
	for _, rr := range rrs {
		if rr.Header().Rrtype != dns.TypeOPT {
			out = append(out, rr)
		}
	}
	return out
}

func TestWireCourses(t *testing.T) {
	good, bad := upstream(t, says("192.0.2.1")), upstream(t, withRcode(dns.RcodeServerFailure))
	denies := upstream(t, withRcode(dns.RcodeNameError))
	for _, tc := range []struct{ corefile, want string }{
		{"forward . " + good, "192.0.2.1"},
		{"forward . " + bad, "SERVFAIL"},
		{"forward . " + bad + " " + good + " {\npolicy sequential\nfailover SERVFAIL\n}", "192.0.2.1"},
		{"forward . " + loopback.Addr() + " " + good + " {\npolicy sequential\n}", "192.0.2.1"},
		{"forward . " + denies + " {\nnext NXDOMAIN\n}\nforward . " + good, "192.0.2.1"},
		{"forward . " + denies + " {\nnext NXDOMAIN\n}\nforward . " + bad + " {\nnext SERVFAIL\n}\nforward . " + good, "192.0.2.1"},
		{"forward . " + good + " {\nforce_tcp\n}", "192.0.2.1"},
		{"forward example.com " + good, "SERVFAIL plugin/forward: no next plugin found"},
	} {
		f := configured(t, tc.corefile)
		if got := answeredWire(t, f, "www.example.org."); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.corefile, got, tc.want)
		}
		if got := answered(f, "www.example.org."); got != tc.want {
			t.Errorf("%s: in the message lane %s, want %s", tc.corefile, got, tc.want)
		}
	}
}

func TestWireDeadUpstream(t *testing.T) {
	f := configured(t, "forward . "+loopback.Addr()+" {\nmax_fails 0\n}")
	_, rcode, _, err := serveWire(t, f, client, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	var op *net.OpError
	if rcode != dns.RcodeServerFailure || !errors.As(err, &op) {
		t.Errorf("%d %v", rcode, err)
	}
	// Attempts that are not limited go on for five seconds, with breathers.
	f = configured(t, "forward . "+loopback.Addr()+" {\nmax_connect_attempts 0\nmax_fails 0\n}")
	began := time.Now()
	_, rcode, _, _ = serveWire(t, f, client, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	if took := time.Since(began); rcode != dns.RcodeServerFailure || took < overall || took > overall+2*time.Second {
		t.Errorf("%d after %v", rcode, took)
	}
}

// max_concurrent counts pendingReplys until they are over, whoever waits for them.
func TestWireMaxConcurrent(t *testing.T) {
	release := make(chan struct{})
	addr := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		<-release
		says("192.0.2.1")(w, r)
	})
	f := configured(t, "forward . "+addr+" {\nmax_concurrent 3\n}")
	var wg sync.WaitGroup
	for n := range 3 {
		wg.Go(func() {
			if got := answeredWire(t, f, fmt.Sprintf("a%d.example.org.", n)); got != "192.0.2.1" {
				t.Errorf("query %d: %s", n, got)
			}
		})
	}
	for end := time.Now().Add(5 * time.Second); f.concurrent.Load() < 3 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if _, rcode, parked, err := serveWire(t, f, client, new(dns.Msg).SetQuestion("b.example.org.", dns.TypeA)); rcode != dns.RcodeRefused || err == nil || parked != 0 {
		t.Errorf("the fourth: %d %v, parked %d times", rcode, err, parked)
	}
	close(release)
	wg.Wait()
	if n := f.concurrent.Load(); n != 0 {
		t.Errorf("%d still count", n)
	}
	if got := answeredWire(t, f, "c.example.org."); got != "192.0.2.1" {
		t.Error(got)
	}
}

// Several may wait for one pendingReply, and it answers each in the case that it was asked.
func TestRelayIsShared(t *testing.T) {
	seen := make(chan struct{})
	f := configured(t, "forward . "+upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		if r.Question[0].Name == "other.example.org." {
			<-seen // that its pendingReply has not ended
		}
		says("192.0.2.1")(w, r)
	}))
	var q wire.Query
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	if !q.Parse(packet) {
		t.Fatal("not eligible")
	}
	r := f.newPendingReply(&q)
	for _, name := range []string{"WWW.example.org.", "www.EXAMPLE.org."} {
		s := make(sleeper, 1)
		r.Then(s)
		<-s
		packet, _ := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
		q.Parse(packet)
		q.Await(r)
		var w wire.Reply
		w.Reset(nil)
		if out := f.ServeWire(context.Background(), &w, &q); out != wire.Done {
			t.Fatal(out)
		}
		m := new(dns.Msg)
		if err := m.Unpack(w.Finish(&q, 1232)); err != nil || len(m.Answer) != 1 || m.Question[0].Name != name {
			t.Errorf("%s: %v %v", name, m, err)
		}
	}
	// It is no answer to another question.
	packet, _ = new(dns.Msg).SetQuestion("other.example.org.", dns.TypeA).Pack()
	q.Parse(packet)
	q.Await(r)
	var w wire.Reply
	w.Reset(nil)
	defer close(seen)
	if out := f.ServeWire(context.Background(), &w, &q); out != wire.Park || q.Awaited() == eventloop.Exchange(r) {
		t.Error("another question was answered by another one's reply: ", out)
	}
}

// guest goes on in the lane of who ends what it waits for, and then keeps the exchange or does not.
type guest struct {
	t     testing.TB
	f     *Forward
	lane  *eventloop.Loop // where its queries begin
	query *wire.Query
	reply *wire.Reply
	room  [1500]byte
	keeps bool
	ended chan wire.Outcome
}

func newGuest(t testing.TB, f *Forward) *guest {
	g := &guest{t: t, f: f, lane: eventloop.New(), query: new(wire.Query), reply: new(wire.Reply), ended: make(chan wire.Outcome, 1)}
	t.Cleanup(g.lane.Close)
	return g
}

func (g *guest) Resume() {
	g.t.Error("resumed in no lane")
	g.ended <- wire.Unpack
}

func (g *guest) ResumeIn(*eventloop.Loop) (done bool) {
	out := g.f.ServeWire(context.Background(), g.reply, g.query)
	keeps := g.keeps
	g.ended <- out
	return !keeps
}

// ask serves the query of packet, and returns what it was parked on.
func (g *guest) ask(packet []byte) eventloop.Exchange {
	g.lane.Enter()
	g.query.Parse(packet)
	g.query.SetLoop(g.lane)
	g.reply.Reset(g.room[:0])
	out := g.f.ServeWire(context.Background(), g.reply, g.query)
	x := g.query.Awaited()
	if out == wire.Park {
		g.query.Wait(g)
		g.lane.Leave() // sends
		out = <-g.ended
	} else {
		g.lane.Leave()
	}
	if out != wire.Done || !g.reply.Holds() {
		g.t.Errorf("came out as %v", out)
	}
	return x
}

// A pendingReply that nobody knows any more is used again, and one that somebody keeps stays as it is.
func TestRelayIsUsedAgain(t *testing.T) {
	f := configured(t, "forward . "+upstream(t, says("192.0.2.1")))
	g := newGuest(t, f)
	const n = 40
	for keeps, most := range map[bool]int{false: n - 1, true: n} {
		g.keeps = keeps
		replies := map[eventloop.Exchange]string{}
		for i := range n {
			name := fmt.Sprintf("n%d.example.org.", i)
			packet, _ := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
			replies[g.ask(packet)] = name
		}
		if len(replies) > most || keeps && len(replies) < n {
			t.Errorf("kept %v: %d replies for %d queries", keeps, len(replies), n)
		}
		for x, name := range replies {
			if r := x.(*pendingReply); keeps && (!r.Over() || wire.Text(r.question[:len(r.question)-4]) != name || len(r.reply) == 0) {
				t.Errorf("%s: its reply has changed", name)
			}
		}
	}
}

func BenchmarkServeWire(b *testing.B) {
	f := configured(b, "forward . "+quick(b))
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		g := newGuest(b, f)
		for pb.Next() {
			g.ask(packet)
		}
	})
}
