package udp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
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

func (h *caller) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
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
		if strings.HasSuffix(f.Function, "(*udpLoop).call") {
			return true
		}
		if !more {
			return false
		}
	}
}

// runningInline is running for a server whose handlers have been quick for long, with a client.
func runningInline(t *testing.T, cfg *Config) (s *Server, c *dns.Conn) {
	t.Helper()
	s, udp, _ := running(t, cfg)
	s.inline.quick.Store(inlineAfter)
	c, err := dns.Dial("udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(10 * time.Second))
	return s, c
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
	s, c := runningInline(t, block1(".", h))
	if !onLoops {
		s.inline.quick.Store(0)
	}
	labels := make([]string, 32)
	for i := range labels {
		labels[i] = "www"
	}
	labels[3] = odd
	for round := range 2 {
		if onLoops {
			s.inline.quick.Store(inlineAfter)
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
	case !onLoops && n > 0, onLoops && n < 8: // what comes after one that was not quick workers call
		t.Errorf("%d calls on loops, %d on workers", n, h.workers.Load())
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
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
	s, c := runningInline(t, block1(".", h))
	send(t, c, "hold", "www")
	if r, err := c.ReadMsg(); err != nil || r.Id != 1 {
		t.Fatalf("got %v, %v", r, err)
	}
	ended := stopping(t, s)
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
	_, c := runningInline(t, block1(".", h))
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
func keepInline(s *Server) (stop func()) {
	s.inline.quick.Store(inlineAfter)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(takeOverAfter / 50):
				s.inline.quick.Store(inlineAfter)
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// Loops whose leaders change all the time lose nothing, and mix nothing up.
func TestLeadersChange(t *testing.T) {
	h := new(caller)
	s, udp, _ := running(t, block1(".", h))
	defer keepInline(s)()
	const clients, batches, each = 8, 30, 16
	var wg sync.WaitGroup
	for range clients {
		c, err := dns.Dial("udp", udp)
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
	if n := h.loops.Load(); n < clients*batches {
		t.Errorf("only %d calls on loops, %d on workers", n, h.workers.Load())
	}
}

// Where handlers turn out to be quick, loops call them; a slow one has workers call them until it is long ago.
func TestInlineOpensAndCloses(t *testing.T) {
	was := quickCall
	t.Cleanup(func() { quickCall = was }) // after the server has ended
	quickCall = time.Second               // a busy machine, or the race detector, makes all slow
	h := new(caller)
	s, udp, _ := running(t, block1(".", h))
	c, err := dns.Dial("udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(times int, labels ...string) {
		t.Helper()
		for range times {
			c.SetDeadline(time.Now().Add(20 * time.Second))
			send(t, c, labels...)
			for range labels {
				if _, err := c.ReadMsg(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	many := slices.Repeat([]string{"www"}, 16)
	ask(inlineAfter/16-1, many...)
	if n := h.loops.Load(); n > 0 {
		t.Errorf("loops called %d times already", n)
	}
	ask(2, many...)
	h.workers.Store(0)
	ask(4, many...)
	if n := h.workers.Load(); n > 0 || h.loops.Load() < 64 {
		t.Errorf("loops called %d times, workers %d times", h.loops.Load(), n)
	}
	s.inline.took(2 * time.Second)
	h.loops.Store(0)
	ask(inlineAfter/16-1, many...)
	if n := h.loops.Load(); n > 0 {
		t.Errorf("loops called %d times after a slow call", n)
	}
	s.inline.quick.Store(inlineAfter)
	ask(1, "nap")
	if n := h.loops.Load(); n != 1 || s.inline.open() {
		t.Errorf("loops called %d times, and go on after one that was taken over", n)
	}
}

// The flag -dns.inline=false leaves all to workers.
func TestInlineIsForbidden(t *testing.T) {
	allowInline = false
	defer func() { allowInline = true }()
	var i inline
	for range 2 * inlineAfter {
		i.took(0)
	}
	if i.open() {
		t.Error("it is open")
	}
}
