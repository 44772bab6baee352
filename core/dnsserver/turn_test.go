package dnsserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// caller is a handler of which nothing is known. The name's first label says what it does before it answers.
type caller struct {
	loops   atomic.Int64 // calls by goroutines that lead a loop
	workers atomic.Int64
	held    chan struct{} // what queries of hold wait for
	late    sync.WaitGroup
	changed atomic.Int64 // queries and writers of late that did not stay what they were
}

const nap = 300 * time.Millisecond

func (h *caller) Name() string { return "caller" }

func (h *caller) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if onLoop() {
		h.loops.Add(1)
	} else {
		h.workers.Add(1)
	}
	m := new(dns.Msg).SetReply(r)
	rr, _ := dns.NewRR(r.Question[0].Name + " 60 IN A 192.0.2.1")
	m.Answer = []dns.RR{rr}
	switch label, _, _ := strings.Cut(r.Question[0].Name, "."); label {
	case "nap":
		time.Sleep(nap)
	case "doze":
		time.Sleep(time.Duration(rand.IntN(3)) * reliefPeriod)
	case "hold":
		<-h.held
	case "slowly":
		ctx.Value(Key{}).(*Server).tempo.add(-2 * mostCredit)
	case "tardy":
		time.Sleep(nap)
		w.WriteMsg(m)
		<-h.held
	case "two":
		w.WriteMsg(m)
		<-h.held
	case "panic":
		panic("as asked")
	case "exit":
		w.WriteMsg(m)
		runtime.Goexit()
	case "late":
		kept := fmt.Sprint(r, w.RemoteAddr(), w.LocalAddr())
		h.late.Go(func() {
			time.Sleep(nap)
			if fmt.Sprint(r, w.RemoteAddr(), w.LocalAddr()) != kept {
				h.changed.Add(1)
			}
			w.WriteMsg(m)
		})
		return 0, nil
	}
	return 0, w.WriteMsg(m)
}

// onLoop reports whether the caller leads a loop.
func onLoop() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "(*turn).call") {
			return true
		}
		if !more {
			return false
		}
	}
}

// runningQuick is running for a server whose handlers have been quick for long.
func runningQuick(t *testing.T, cfg *Config) (s *Server, conns map[string]*dns.Conn) {
	t.Helper()
	s, udp, tcp := running(t, cfg)
	s.tempo.add(mostCredit)
	conns = map[string]*dns.Conn{}
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		c, err := dns.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(10 * time.Second))
		conns[network] = c
	}
	return s, conns
}

// send sends one query for each label, with its number as the id.
func send(t *testing.T, c *dns.Conn, labels ...string) {
	t.Helper()
	for i, label := range labels {
		m := new(dns.Msg).SetQuestion(fmt.Sprintf("%s.x%d.", label, i), dns.TypeA)
		m.Id = uint16(i)
		if err := c.WriteMsg(m); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever one handler does, the others are answered soon, and so is what comes after.
func TestHandlersAreOdd(t *testing.T) {
	for _, odd := range []string{"nap", "exit", "late", "panic"} {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(odd+" "+network+" on loops", func(t *testing.T) { handlerIsOdd(t, odd, network, true) })
			t.Run(odd+" "+network+" on workers", func(t *testing.T) { handlerIsOdd(t, odd, network, false) })
		}
	}
}

func handlerIsOdd(t *testing.T, odd, network string, onLoops bool) {
	h := new(caller)
	s, conns := runningQuick(t, block1(".", h))
	if !onLoops {
		s.tempo.add(-mostCredit - 1)
	}
	c := conns[network]
	labels := make([]string, 32)
	for i := range labels {
		labels[i] = "www"
	}
	labels[3] = odd
	for round := range 2 {
		if onLoops {
			s.tempo.add(mostCredit)
		}
		began := time.Now()
		send(t, c, labels...)
		var longest, odd time.Duration
		rcode := 0
		for range labels {
			r, err := c.ReadMsg()
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			if want := fmt.Sprintf("%s.x%d.", labels[r.Id], r.Id); r.Question[0].Name != want {
				t.Fatalf("got a reply for %s, want %s", r.Question[0].Name, want)
			}
			if r.Id == 3 {
				odd, rcode = took, r.Rcode
				continue
			}
			longest = max(longest, took)
		}
		if longest >= nap { // 2*reliefPeriod on a quiet machine
			t.Errorf("round %d: another took %v", round, longest)
		}
		slow, failed := labels[3] == "nap" || labels[3] == "late", labels[3] == "panic"
		if slow && odd < nap || failed != (rcode == dns.RcodeServerFailure) {
			t.Errorf("round %d: it took %v, rcode %d", round, odd, rcode)
		}
	}
	h.late.Wait()
	if n := h.changed.Load(); n > 0 {
		t.Errorf("%d changed", n)
	}
	want := int64(0)
	if onLoops {
		want = 64
	}
	if n := h.loops.Load(); n != want || h.workers.Load() != 64-want {
		t.Errorf("%d calls on loops, %d on workers", n, h.workers.Load())
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	eventually(t, "nobody looks whether loops are to be relieved", func() bool {
		theRelief.mu.Lock()
		defer theRelief.mu.Unlock()
		return len(theRelief.turns) == 0 && !theRelief.looking
	})
	eventually(t, "none counts as waiting", func() bool {
		w := waiting()
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.n == len(w.idle)
	})
}

// A server that is stopped waits for handlers that its loops have called.
func TestStopWaitsForHandlersOnLoops(t *testing.T) {
	h := &caller{held: make(chan struct{})}
	s, conns := runningQuick(t, block1(".", h))
	defer keepQuick(s)()
	for network, c := range conns {
		send(t, c, "hold", "www")
		if r, err := c.ReadMsg(); err != nil || r.Id != 1 {
			t.Fatalf("%s: got %v, %v", network, r, err)
		}
	}
	ended := stopping(t, s)
	close(h.held)
	for network, c := range conns {
		if r, err := c.ReadMsg(); err != nil || r.Id != 0 {
			t.Errorf("%s: got %v, %v", network, r, err)
		}
	}
	ended()
	if h.loops.Load() != 4 {
		t.Errorf("%d calls on loops", h.loops.Load())
	}
}

// No more of a connection's queries wait than may, also if loops call their handlers.
func TestPipelineOfHandlersOnLoops(t *testing.T) {
	h := &caller{held: make(chan struct{})}
	const few = 3
	s, conns := runningQuick(t, pipelined(h, few))
	c := conns["tcp"]
	labels := make([]string, 20)
	for i := range labels {
		labels[i] = "hold"
	}
	defer keepQuick(s)()
	send(t, c, labels...)
	time.Sleep(40 * reliefPeriod)
	if n := h.loops.Load(); n < 2 || n > few+1 { // the last one has nobody that could relieve its goroutine
		t.Errorf("%d wait", n)
	}
	close(h.held)
	for range labels {
		if _, err := c.ReadMsg(); err != nil {
			t.Fatal(err)
		}
	}
}

// What a handler writes before it waits is sent, also where nobody can relieve it.
func TestRepliesOfHandlersThatGoOn(t *testing.T) {
	h := &caller{held: make(chan struct{})}
	s, conns := runningQuick(t, pipelined(h, 1))
	defer keepQuick(s)()
	for network, c := range conns {
		send(t, c, "www", "two", "two")
		for range 3 {
			if _, err := c.ReadMsg(); err != nil {
				t.Errorf("%s: %v", network, err)
			}
		}
	}
	close(h.held)
	for _, c := range conns {
		for range 2 {
			if r, err := c.ReadMsg(); err != nil || r.Id == 0 {
				t.Errorf("%v, %v", r, err)
			}
		}
	}
	if n := h.loops.Load(); n != 6 {
		t.Errorf("%d calls on loops", n)
	}
}

// What a handler writes on a worker is sent while its connection waits until fewer queries wait.
func TestRepliesWhileTheConnectionWaits(t *testing.T) {
	h := &caller{held: make(chan struct{})}
	_, conns := runningQuick(t, pipelined(h, 1))
	c := conns["tcp"]
	send(t, c, "www", "slowly", "tardy", "tardy") // from slowly on workers are called
	for range 3 {
		if _, err := c.ReadMsg(); err != nil {
			t.Error(err)
		}
	}
	close(h.held)
	for range 3 {
		if _, err := c.ReadMsg(); err != nil {
			t.Error(err)
		}
	}
	if h.loops.Load() != 2 || h.workers.Load() != 2 {
		t.Errorf("%d calls on loops, %d on workers", h.loops.Load(), h.workers.Load())
	}
}

// pipelined is a block whose connections have so many queries wait at most.
func pipelined(h *caller, most int) *Config {
	cfg := block1(".", h)
	cfg.Limits.Pipeline = &most
	return cfg
}

// keepQuick makes handlers count as quick, whatever they do.
func keepQuick(s *Server) (stop func()) {
	s.tempo.add(mostCredit)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(reliefPeriod / 4):
				s.tempo.add(mostCredit)
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// Loops whose leaders change all the time lose nothing, and mix nothing up.
func TestLeadersChange(t *testing.T) {
	h := new(caller)
	s, udp, tcp := running(t, block1(".", h))
	defer keepQuick(s)()
	const clients, batches, each = 4, 30, 16
	var wg sync.WaitGroup
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		for range clients {
			c, err := dns.Dial(network, addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(30 * time.Second))
			wg.Go(func() {
				for range batches {
					labels := make([]string, each)
					for i := range labels {
						labels[i] = []string{"www", "www", "doze", "late", "exit"}[min(rand.IntN(40), 39)*5/40]
						if labels[i] == "late" && rand.IntN(8) > 0 {
							labels[i] = "www"
						}
					}
					send(t, c, labels...)
					seen := map[uint16]bool{}
					for range labels {
						r, err := c.ReadMsg()
						if err != nil {
							t.Errorf("%s: after %d replies: %v", network, len(seen), err)
							return
						}
						if want := fmt.Sprintf("%s.x%d.", labels[r.Id], r.Id); seen[r.Id] || r.Question[0].Name != want {
							t.Errorf("%s: got a reply for %s, want %s", network, r.Question[0].Name, want)
						}
						seen[r.Id] = true
					}
				}
			})
		}
	}
	wg.Wait()
	h.late.Wait()
	if n := h.changed.Load(); n > 0 {
		t.Errorf("%d changed", n)
	}
	if n := h.loops.Load(); n < 2*clients*batches*each*3/4 {
		t.Errorf("only %d calls on loops", n)
	}
}

// Where handlers turn out to be quick, loops call them; where they wait now and then, workers do.
func TestTempoOfServer(t *testing.T) {
	was := quickRun
	t.Cleanup(func() { quickRun = was }) // after the server has ended
	quickRun = slowRun                   // a busy machine, or the race detector, makes all slow
	h := new(caller)
	s, udp, _ := running(t, block1(".", h))
	c, err := dns.Dial("udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	until := func(what string, done func() bool, labels ...string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !done(); {
			if time.Now().After(end) {
				t.Fatalf("in vain waited until %s", what)
			}
			c.SetDeadline(time.Now().Add(5 * time.Second))
			send(t, c, labels...)
			for range labels {
				if _, err := c.ReadMsg(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	until("loops call", func() bool {
		if almost := int64(muchCredit - 100*saved); s.tempo.credit.Load() < almost { // on a busy machine all takes long now and then
			s.tempo.credit.Store(almost)
		}
		return h.loops.Load() > 100
	}, "www", "www", "www", "www", "www", "www", "www", "www")
	if n := h.workers.Load(); n < 100 {
		t.Errorf("loops called after %d queries", n)
	}
	h.workers.Store(0)
	until("workers call", func() bool { return h.workers.Load() > 100 }, "www", "www", "www", "doze")
	h.loops.Store(0)
	until("they go on", func() bool { return h.workers.Load() > 1000 }, "www", "www", "www", "doze")
	if n := h.loops.Load(); n > 100 {
		t.Errorf("loops called %d times", n)
	}
}

func TestTempo(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		took  time.Duration
		every int // one of so many takes long
		want  bool
	}{
		"quick":            {0, 1, true},
		"asks others":      {2 * ms, 10, false},
		"all ask others":   {100 * time.Microsecond, 1, false},
		"seldom preempted": {4 * ms, 5000, true},
		"often preempted":  {4 * ms, 1000, true},
		"computes":         {50 * time.Microsecond, 1, false},
	} {
		var s tempo
		for i := range 100_000 {
			d := 5 * time.Microsecond
			if i%c.every == 0 {
				d = max(d, c.took)
			}
			s.add(gain(d))
		}
		if got := s.quick.Load(); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
		if got := time.Duration(s.credit.Load()); got < 0 || got > mostCredit {
			t.Errorf("%s: credit %v", name, got)
		}
	}
}
