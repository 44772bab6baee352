package cache

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// together asks the same n times at once and returns how many were answered with an address. The plugin below answers when all wait.
func (w *world) together(n int, qtype uint16, ctx context.Context, change func(*dns.Msg), address string) (answered int) {
	w.t.Helper()
	gate := make(chan struct{})
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		<-gate
		m := new(dns.Msg).SetReply(r)
		rr, _ := dns.NewRR(address)
		m.Answer = []dns.RR{rr}
		return 0, rw.WriteMsg(m)
	})
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range n {
		wg.Go(func() {
			r := new(dns.Msg).SetQuestion("www.example.org.", qtype)
			if change != nil {
				change(r)
			}
			rec := dnstest.NewRecorder(&test.ResponseWriter{})
			w.c.ServeDNS(ctx, rec, r)
			if rec.Msg != nil && len(rec.Msg.Answer) == 1 {
				mu.Lock()
				answered++
				mu.Unlock()
			}
		})
	}
	time.Sleep(50 * time.Millisecond) // all have come as far as they get
	close(gate)
	wg.Wait()
	return answered
}

func TestMissesAreShared(t *testing.T) {
	const n = 20
	var networks atomic.Int32
	for name, tc := range map[string]struct {
		qtype  uint16
		ctx    context.Context
		change func(*dns.Msg)
		answer string
		asked  int64
	}{
		"shared":            {qtype: dns.TypeA, answer: "www.example.org. 60 IN A 192.0.2.1", asked: 1},
		"of no further use": {qtype: dns.TypeA, answer: "www.example.org. 60 IN NS a.example.org.", asked: n},
		"loop's probe":      {qtype: dns.TypeHINFO, answer: "www.example.org. 60 IN HINFO a b", asked: n},
		"inner question":    {qtype: dns.TypeA, ctx: context.WithValue(context.Background(), dnsserver.LoopKey{}, 1), answer: "www.example.org. 60 IN A 192.0.2.1", asked: n},
		"of one network": {qtype: dns.TypeA, answer: "www.example.org. 60 IN A 192.0.2.1", asked: 1, change: func(m *dns.Msg) {
			m.SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{Code: 8, Family: 1, SourceNetmask: 24, Address: net.IPv4(192, 0, 2, 0).To4()}}
		}},
		"of different networks": {qtype: dns.TypeA, answer: "www.example.org. 60 IN A 192.0.2.1", asked: n, change: func(m *dns.Msg) {
			from(fmt.Sprintf("10.0.%d.0/24", networks.Add(1)))(m)
		}},
		"with a cookie": {qtype: dns.TypeA, answer: "www.example.org. 60 IN A 192.0.2.1", asked: 1, change: func(m *dns.Msg) {
			m.SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"}}
		}},
		"options": {qtype: dns.TypeA, answer: "www.example.org. 60 IN A 192.0.2.1", asked: n, change: func(m *dns.Msg) {
			m.SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: 65001, Data: []byte("x")}}
		}},
		"not recursive": {qtype: dns.TypeA, answer: "www.example.org. 60 IN A 192.0.2.1", asked: n, change: func(m *dns.Msg) { m.RecursionDesired = false }},
	} {
		w := newWorld(t, nil)
		ctx := tc.ctx
		if ctx == nil {
			ctx = context.Background()
		}
		if got := w.together(n, tc.qtype, ctx, tc.change, tc.answer); got != n || w.asked.Load() != tc.asked {
			t.Errorf("%s: %d answered, asked %d times, want %d", name, got, w.asked.Load(), tc.asked)
		}
		for i := range w.c.flights.shards {
			if left := len(w.c.flights.shards[i].all); left > 0 {
				t.Errorf("%s: %d flights are left", name, left)
			}
		}
	}
}

// One that panics leaves nobody waiting.
func TestLeaderPanics(t *testing.T) {
	w := newWorld(t, nil)
	entered := make(chan struct{})
	gate := make(chan struct{})
	first := true
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		if !first {
			return 0, rw.WriteMsg(new(dns.Msg).SetReply(r))
		}
		first = false
		close(entered)
		<-gate
		panic("as it should")
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { recover() }()
		w.c.ServeDNS(context.Background(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	}()
	<-entered
	waiting := make(chan *dns.Msg)
	go func() {
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		w.c.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		waiting <- rec.Msg
	}()
	time.Sleep(20 * time.Millisecond)
	close(gate)
	<-done
	select {
	case m := <-waiting:
		if m == nil {
			t.Error("no answer")
		}
	case <-time.After(3 * time.Second):
		t.Error("it waits still")
	}
}

// source parks each query for a run that the test ends, and answers then.
type source struct {
	plugin.Handler
	begun int
	last  *eventloop.Ending
	noAD  bool
}

func (s *source) WireSelf() plugin.Handler { return s }

func (s *source) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	s.noAD = s.noAD || !q.AD()
	if q.Awaited() == nil {
		s.begun++
		s.last = new(eventloop.Ending)
		q.Await(s.last)
		return wire.Park
	}
	w.Begin(q)
	w.SetFlag(wire.FlagAD, true)
	w.Addr(wire.Answer, []byte("\x03www\x07example\x03org\x00"), 60, netip.MustParseAddr("192.0.2.1"))
	w.SetWriter("source")
	return wire.Done
}

// query is a query in the lane.
func query(t *testing.T, name string, awaited eventloop.Exchange) *wire.Query {
	t.Helper()
	b, err := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	q := new(wire.Query)
	if !q.Parse(b) {
		t.Fatal("not eligible")
	}
	q.Arrival = time.Now().Add(-time.Millisecond)
	q.Await(awaited)
	return q
}

func TestMissesOnTheWire(t *testing.T) {
	s := new(source)
	c := New()
	c.Next = s
	c.prepare()
	n := c.countsOf(context.Background())
	requests, misses := testutil.ToFloat64(n.requests.counter()), testutil.ToFloat64(n.misses.counter())
	begin := time.Now()

	serve := func(name string, awaited eventloop.Exchange) (*wire.Query, *dns.Msg, string, wire.Outcome) {
		q := query(t, name, awaited)
		q.Arrival = begin // all have come before the answer, however slow the machine is
		var w wire.Reply
		w.Reset(nil)
		out := c.ServeWire(context.Background(), &w, q)
		if q.AD() {
			t.Error("the query was not given back as it was")
		}
		if out != wire.Done {
			return q, nil, "", out
		}
		m := new(dns.Msg)
		if err := m.Unpack(w.Finish(q, 1232)); err != nil {
			t.Fatal(err)
		}
		return q, m, w.Writer(), out
	}
	first, _, _, out := serve("www.example.org.", nil)
	second, _, _, out2 := serve("WWW.example.org.", nil)
	if out != wire.Park || out2 != wire.Park || first.Awaited() != second.Awaited() || s.begun != 1 {
		t.Fatalf("%v and %v, %d begun", out, out2, s.begun)
	}
	if testutil.ToFloat64(n.requests.counter()) != requests {
		t.Error("counted before it was done")
	}
	s.last.End()
	for i, tc := range []struct {
		name, writer string
		awaited      eventloop.Exchange
		misses       float64
	}{{"WWW.example.org.", "source", second.Awaited(), 1}, {"www.example.org.", "cache", first.Awaited(), 2}, {"www.example.org.", "cache", nil, 2}} {
		_, m, writer, out := serve(tc.name, tc.awaited)
		if out != wire.Done || writer != tc.writer || len(m.Answer) != 1 || m.Answer[0].Header().Name != tc.name || m.AuthenticatedData {
			t.Errorf("%d: %v by %q: %v", i, out, writer, m)
		}
		if got := testutil.ToFloat64(n.misses.counter()) - misses; got != tc.misses {
			t.Errorf("%d: %v misses", i, got)
		}
	}
	if got := testutil.ToFloat64(n.requests.counter()) - requests; got != 3 {
		t.Errorf("%v requests", got)
	}
	if s.noAD {
		t.Error("asked without the AD bit")
	}
	for i := range c.flights.shards {
		if len(c.flights.shards[i].all) > 0 {
			t.Error("a flight is left")
		}
	}
}

// A miss in the message lane is waited for in the wire lane, too.
func TestLanesShareMisses(t *testing.T) {
	w := newWorld(t, nil)
	gate, entered := make(chan struct{}), make(chan struct{})
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		close(entered)
		<-gate
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{test.A("www.example.org. 60 IN A 192.0.2.1")}
		return 0, rw.WriteMsg(m)
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.c.ServeDNS(context.Background(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	}()
	<-entered
	q := query(t, "www.example.org.", nil)
	var r wire.Reply
	r.Reset(nil)
	if out := w.c.ServeWire(context.Background(), &r, q); out != wire.Park {
		t.Fatal(out)
	}
	woken := make(eventloop.Waiter)
	q.Awaited().Then(woken)
	close(gate)
	<-done
	<-woken
	again := query(t, "www.example.org.", q.Awaited())
	if out := w.c.ServeWire(context.Background(), &r, again); out != wire.Done || r.Count(wire.Answer) != 1 || w.asked.Load() != 1 {
		t.Errorf("%v with %d records, asked %d times", out, r.Count(wire.Answer), w.asked.Load())
	}
}

// What is due for a refresh is answered in the lane, and refreshed beside it.
func TestRefreshOnTheWire(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.stale, s.staleTTL = time.Hour, 0 })
	w.says(dns.RcodeSuccess, "www.example.org. 10 IN A 192.0.2.1")
	w.ask("www.example.org.", dns.TypeA, nil)
	w.clock.Store(11)
	w.says(dns.RcodeSuccess, "www.example.org. 10 IN A 192.0.2.2")
	var r wire.Reply
	r.Reset(nil)
	q := query(t, "www.example.org.", nil)
	if out := w.c.ServeWire(context.Background(), &r, q); out != wire.Done || r.Count(wire.Answer) != 1 || r.TTL(0) != 0 {
		t.Fatal(out, r.Count(wire.Answer))
	}
	eventually.Holds(t, "the refresh", func() bool {
		r.Reset(nil)
		return w.c.ServeWire(context.Background(), &r, query(t, "www.example.org.", nil)) == wire.Done && r.RData(0)[3] == 2
	})
	if got := w.asked.Load(); got != 2 {
		t.Errorf("asked %d times", got)
	}
}

// Two that miss the same at one time, before the first one is parked, are one all the same; a name that is answered at once needs no flight.
func TestFlightsBeginAtOnce(t *testing.T) {
	c := New()
	c.prepare()
	gate := make(chan struct{})
	s := &slow{entered: make(chan struct{}), gate: gate}
	c.Next = s
	first := query(t, "www.example.org.", nil)
	parked := make(chan wire.Outcome)
	go func() {
		var w wire.Reply
		w.Reset(nil)
		parked <- c.ServeWire(context.Background(), &w, first)
	}()
	<-s.entered
	second := query(t, "www.example.org.", nil)
	var w wire.Reply
	w.Reset(nil)
	if out := c.ServeWire(context.Background(), &w, second); out != wire.Park || s.begun != 0 {
		t.Fatalf("%v, %d begun", out, s.begun)
	}
	woken := make(eventloop.Waiter)
	second.Awaited().Then(woken)
	close(gate)
	if out := <-parked; out != wire.Park {
		t.Fatal(out)
	}
	<-woken
	again := query(t, "www.example.org.", second.Awaited())
	if out := c.ServeWire(context.Background(), &w, again); out != wire.Park || again.Awaited() != first.Awaited() || s.begun != 1 {
		t.Errorf("%v, %d begun", out, s.begun)
	}
	s.last.End()
	for i := range c.flights.shards {
		if len(c.flights.shards[i].all) > 0 {
			t.Error("a flight is left")
		}
	}

	disabled := New()
	disabled.Next, disabled.success.disabled = &tailor{}, [][]byte{wire.Root}
	disabled.prepare()
	for range 2 {
		if out := disabled.ServeWire(context.Background(), &w, query(t, "www.example.org.", nil)); out != wire.Done {
			t.Fatal(out)
		}
	}
	k := disabled.questionOf(query(t, "www.example.org.", nil))
	if !disabled.atOnce.has(&k) {
		t.Error("it was not answered at once")
	}
	disabled.Next = s
	if out := disabled.ServeWire(context.Background(), &w, query(t, "www.example.org.", nil)); out != wire.Park || disabled.atOnce.has(&k) {
		t.Error("it is not answered at once any more")
	}
}

// slow is a source whose first query waits for the gate.
type slow struct {
	source
	entered, gate chan struct{}
}

func (s *slow) WireSelf() plugin.Handler { return s }

func (s *slow) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if s.begun == 0 {
		close(s.entered)
		<-s.gate
	}
	return s.source.ServeWire(ctx, w, q)
}

// A failure is that of all who have waited for it, in either lane: another try would make them wait as long again, and
// an upstream that is not well be asked by all of them.
func TestFailuresAreShared(t *testing.T) {
	const n = 20
	down := errors.New("nobody is there")
	for name, tc := range map[string]struct {
		rcode int
		asked int64
	}{
		"a failure":     {dns.RcodeServerFailure, 1},
		"of one client": {dns.RcodeRefused, n},
	} {
		w := newWorld(t, nil)
		gate := make(chan struct{})
		w.below(func(dns.ResponseWriter, *dns.Msg) (int, error) {
			<-gate
			return tc.rcode, down
		})
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				rcode, err := w.c.ServeDNS(context.Background(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
				if rcode != tc.rcode || err != down {
					t.Errorf("%s: got %d, %v", name, rcode, err)
				}
			})
		}
		time.Sleep(50 * time.Millisecond) // all have come as far as they get
		close(gate)
		wg.Wait()
		if got := w.asked.Load(); got != tc.asked {
			t.Errorf("%s: asked %d times, want %d", name, got, tc.asked)
		}
	}
}

// Who waits in the wire lane shares it, too.
func TestLanesShareFailures(t *testing.T) {
	w := newWorld(t, nil)
	down := errors.New("nobody is there")
	gate, entered := make(chan struct{}), make(chan struct{})
	w.below(func(dns.ResponseWriter, *dns.Msg) (int, error) {
		close(entered)
		<-gate
		return dns.RcodeServerFailure, down
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.c.ServeDNS(context.Background(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	}()
	<-entered
	q := query(t, "www.example.org.", nil)
	var r wire.Reply
	r.Reset(nil)
	if out := w.c.ServeWire(context.Background(), &r, q); out != wire.Park {
		t.Fatal(out)
	}
	woken := make(eventloop.Waiter)
	q.Awaited().Then(woken)
	close(gate)
	<-done
	<-woken
	n := w.c.countsOf(context.Background())
	misses := testutil.ToFloat64(n.misses.counter())
	again := query(t, "www.example.org.", q.Awaited())
	if out := w.c.ServeWire(context.Background(), &r, again); out != wire.Done || !r.Failed() || r.Rcode() != wire.ServFail || r.Err() != down || w.asked.Load() != 1 {
		t.Errorf("%v with rcode %d, %v, asked %d times", out, r.Rcode(), r.Err(), w.asked.Load())
	}
	if got := testutil.ToFloat64(n.misses.counter()) - misses; got != 1 {
		t.Errorf("%v misses", got)
	}
}

// One whose own time is over has not failed for others.
func TestFailureOfWhoGaveUpIsHisAlone(t *testing.T) {
	w := newWorld(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	entered := make(chan struct{}, 2)
	w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
		if entered <- struct{}{}; w.asked.Load() > 1 {
			return 0, rw.WriteMsg(new(dns.Msg).SetReply(r))
		}
		<-ctx.Done()
		return dns.RcodeServerFailure, ctx.Err()
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.c.ServeDNS(ctx, &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	}()
	<-entered
	time.AfterFunc(20*time.Millisecond, cancel)
	rcode, err := w.c.ServeDNS(context.Background(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	<-done
	if rcode != 0 || err != nil || w.asked.Load() != 2 {
		t.Errorf("got %d, %v, asked %d times", rcode, err, w.asked.Load())
	}
}
