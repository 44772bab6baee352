package udp

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

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

// caller is a handler of which nothing is known. The name's first label says what it does before it answers.
type caller struct {
	loops   atomic.Int64 // calls by goroutines that lead a loop
	workers atomic.Int64
	packed  []byte        // the reply of quick
	held    chan struct{} // what queries of hold wait for
	late    sync.WaitGroup
	changed atomic.Int64 // queries and writers of late that did not stay what they were
}

const nap = 300 * time.Millisecond

func (h *caller) Name() string { return "caller" }

func (h *caller) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if strings.HasPrefix(r.Question[0].Name, "quick.") { // does not even look who calls
		w.Write(h.packed)
		return 0, nil
	}
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
		time.Sleep(time.Duration(rand.IntN(3)) * takeOverAfter)
	case "self":
		in, err := dns.Exchange(new(dns.Msg).SetQuestion("www.self.", dns.TypeA), w.LocalAddr().String())
		if err != nil {
			return dns.RcodeServerFailure, err
		}
		m.Answer = in.Answer
	case "hold":
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
		if strings.HasSuffix(f.Function, "(*Lead).Call") {
			return true
		}
		if !more {
			return false
		}
	}
}

// takeOverAfter is how long a call may hold its loop up, as package exec has it; inlineAfter, how many quick calls
// open it.
const (
	takeOverAfter = 5 * time.Millisecond
	inlineAfter   = 4096
)

// open has the handlers of u called inline, as if they had been quick for long.
func open(u *served) {
	for !u.inline.Open() {
		u.inline.Took(0)
	}
}

// servingInline is serving where handlers have been quick for long, with a client.
func servingInline(t *testing.T, h plugin.Handler) (s *served, c *dns.Conn) {
	t.Helper()
	s = serving(t, h, Options{})
	open(s)
	return s, connected(t, s)
}

// connected is a client of s.
func connected(t *testing.T, s *served) *dns.Conn {
	t.Helper()
	c, err := dns.Dial("udp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(clients.AskTime))
	return c
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
	for _, odd := range []string{"nap", "exit", "late", "panic", "self"} {
		t.Run(odd+" inline", func(t *testing.T) { handlerIsOdd(t, odd, true) })
		t.Run(odd+" on workers", func(t *testing.T) { handlerIsOdd(t, odd, false) })
	}
}

func handlerIsOdd(t *testing.T, odd string, onLoops bool) {
	h := new(caller)
	s, c := servingInline(t, h)
	if !onLoops {
		s.inline.Close()
	}
	labels := make([]string, 32)
	for i := range labels {
		labels[i] = "www"
	}
	labels[3] = odd
	for round := range 2 {
		if onLoops {
			open(s)
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
		if longest >= nap { // 2*takeOverAfter on a quiet machine
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
	switch n := h.loops.Load(); {
	case !onLoops && n > 0, onLoops && n < 2: // the first of each round; what comes after one that was not quick workers call
		t.Errorf("%d calls on loops, %d on workers", n, h.workers.Load())
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	eventually.Holds(t, "none counts as waiting", nobodyWaits)
}

// nobodyWaits reports whether no place is taken of those for queries that may wait.
func nobodyWaits() bool {
	exec.SetWaiting(1)
	defer exec.SetWaiting(memory.Waiting(memory.Limit()))
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if !exec.Enter(over) {
		return false
	}
	exec.Leave()
	return true
}

// A server that is stopped waits for handlers that its loops have called.
func TestStopWaitsForHandlersOnLoops(t *testing.T) {
	h := &caller{held: make(chan struct{})}
	s, c := servingInline(t, h)
	send(t, c, "hold", "www")
	if r, err := c.ReadMsg(); err != nil || r.Id != 1 {
		t.Fatalf("got %v, %v", r, err)
	}
	ended := coretest.Stopping(t, s.end)
	close(h.held)
	if r, err := c.ReadMsg(); err != nil || r.Id != 0 {
		t.Errorf("got %v, %v", r, err)
	}
	ended()
	if h.loops.Load() < 1 {
		t.Error("no calls on loops")
	}
}

// What a handler writes before it waits is sent.
func TestRepliesOfHandlersThatGoOn(t *testing.T) {
	h := &caller{held: make(chan struct{})}
	_, c := servingInline(t, h)
	send(t, c, "two", "www", "two")
	for range 3 {
		if _, err := c.ReadMsg(); err != nil {
			t.Error(err)
		}
	}
	close(h.held)
	for range 2 {
		if r, err := c.ReadMsg(); err != nil || r.Id == 1 {
			t.Errorf("%v, %v", r, err)
		}
	}
	if h.loops.Load() < 1 {
		t.Error("no calls on loops")
	}
}

// keepInline has handlers called inline, whatever they do.
func keepInline(s *served) (stop func()) {
	open(s)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(takeOverAfter / 50):
				open(s)
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// Loops whose leaders change all the time lose nothing, and mix nothing up.
func TestLeadersChange(t *testing.T) {
	h := new(caller)
	s := serving(t, h, Options{})
	defer keepInline(s)()
	const askers, batches, each = 8, 30, 16
	var wg sync.WaitGroup
	for range askers {
		c := connected(t, s)
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
						t.Errorf("after %d replies: %v", len(seen), err)
						return
					}
					if want := fmt.Sprintf("%s.x%d.", labels[r.Id], r.Id); seen[r.Id] || r.Question[0].Name != want {
						t.Errorf("got a reply for %s, want %s", r.Question[0].Name, want)
					}
					seen[r.Id] = true
				}
			}
		})
	}
	wg.Wait()
	h.late.Wait()
	if n := h.changed.Load(); n > 0 {
		t.Errorf("%d changed", n)
	}
	if n := h.loops.Load(); n < askers*batches {
		t.Errorf("only %d calls on loops, %d on workers", n, h.workers.Load())
	}
}

// Where handlers turn out to be quick, loops call them; one that is taken over has workers call them again.
func TestInlineOpensAndCloses(t *testing.T) {
	h := &caller{packed: coretest.Packed(t, coretest.Query("quick.x0."))}
	s := serving(t, h, Options{})
	c := connected(t, s)
	asked := func(labels ...string) {
		t.Helper()
		c.SetDeadline(time.Now().Add(clients.AskTime))
		send(t, c, labels...)
		for range labels {
			if _, err := c.ReadMsg(); err != nil {
				t.Fatal(err)
			}
		}
	}
	asked("www", "www")
	if n := h.loops.Load(); n > 0 || h.workers.Load() != 2 {
		t.Errorf("loops called %d times already, workers %d times", n, h.workers.Load())
	}
	// One that workers have called quickly counts. On a busy machine few are quick.
	eventually.Holds(t, "a quick call opens it", func() bool {
		s.inline.Close()
		for range inlineAfter - 1 {
			s.inline.Took(0)
		}
		if s.inline.Open() {
			t.Fatal("it is open already")
		}
		asked("quick")
		return s.inline.Open()
	})
	h.loops.Store(0)
	h.workers.Store(0)
	for range 4 {
		open(s)
		asked("www")
	}
	if h.loops.Load() != 4 || h.workers.Load() != 0 {
		t.Errorf("loops called %d times, workers %d times", h.loops.Load(), h.workers.Load())
	}
	open(s)
	h.loops.Store(0)
	asked("nap")
	if n := h.loops.Load(); n != 1 || s.inline.Open() {
		t.Errorf("loops called %d times, and go on after one that was taken over", n)
	}
	asked("www")
	if n := h.workers.Load(); n != 1 {
		t.Errorf("workers called %d times after that", n)
	}
}

// The flag -dns.inline=false leaves all to workers.
func TestInlineIsForbidden(t *testing.T) {
	exec.AllowInline = false
	t.Cleanup(func() { exec.AllowInline = true }) // after the server has ended
	h := new(caller)
	s := serving(t, h, Options{})
	for range 2 * inlineAfter {
		s.inline.Took(0)
	}
	ask(t, s.addr, "www.", nil)
	if s.inline.Open() || h.loops.Load() > 0 || h.workers.Load() != 1 {
		t.Errorf("open %v; loops called %d times", s.inline.Open(), h.loops.Load())
	}
}
