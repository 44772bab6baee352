package cache

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// fails makes the plugin below fail without an answer.
func (w *world) fails(rcode int) {
	w.below(func(dns.ResponseWriter, *dns.Msg) (int, error) { return rcode, errors.New("nobody answers") })
}

// Without the option failures are not kept; with it they are, and longer each time.
func TestFailures(t *testing.T) {
	for _, kept := range []bool{false, true} {
		w := newWorld(t, func(s *settings) { s.failures = kept })
		w.fails(dns.RcodeServerFailure)
		w.oneLane = true
		asked := func(at int64) int64 {
			w.clock.Store(at)
			before := w.asked.Load()
			w.ask("example.org.", dns.TypeA, nil)
			return w.asked.Load() - before
		}
		var got []int64
		for _, at := range []int64{0, 4, 5, 14, 15, 34, 35} { // kept for 5, 10, 20 seconds
			got = append(got, asked(at))
		}
		for i, n := range got {
			if want := int64(1 - i%2); n != want && kept || n != 1 && !kept {
				t.Errorf("kept %v: query %d: asked %d times", kept, i, n)
			}
		}
		if !kept {
			continue
		}
		m, rcode := w.ask("example.org.", dns.TypeA, from())
		if m == nil || rcode != 0 || m.Rcode != dns.RcodeServerFailure || m.Authoritative || edesOf(m) != "13 " {
			t.Errorf("got %v, %d", m, rcode)
		}
		// It does not grow without end, and not for ever.
		at := int64(35)
		for _, ttl := range []int64{40, 80, 160, 300, 300, 300} {
			at += ttl
			asked(at)
		}
		if n := asked(at + 299); n != 0 {
			t.Errorf("asked %d times before five minutes are over", n)
		}
		if n := asked(at + 300); n != 1 {
			t.Errorf("asked %d times when five minutes are over", n)
		}
		asked(at + 2000)
		if n := asked(at + 2006); n != 1 {
			t.Errorf("asked %d times: a failure long ago counts", n)
		}
	}
}

// What is no failure of resolution is not kept, nor what the sweep finds over; an answer ends a failure.
func TestOtherFailures(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.failures = true })
	w.fails(dns.RcodeRefused)
	for range 2 {
		w.ask("example.org.", dns.TypeA, nil)
	}
	if w.asked.Load() != 2 {
		t.Errorf("asked %d times", w.asked.Load())
	}
	w.fails(dns.RcodeServerFailure)
	w.ask("example.org.", dns.TypeA, nil)
	for at, want := range map[int64]int{5: 1, 9: 1, 10: 0} {
		w := newWorld(t, func(s *settings) { s.failures = true })
		w.fails(dns.RcodeServerFailure)
		w.ask("example.org.", dns.TypeA, nil)
		w.clock.Store(at)
		if w.c.sweep(0, shards); w.c.negative.len() != want {
			t.Errorf("%d entries after %d s", w.c.negative.len(), at)
		}
	}
	w.clock.Store(5)
	w.says(0, aRecord)
	w.ask("example.org.", dns.TypeA, nil)
	if w.c.negative.len() != 0 || w.c.positive.len() != 1 {
		t.Errorf("%d denials and %d answers", w.c.negative.len(), w.c.positive.len())
	}
}

// A failure of one network is not that of another, and a stale answer goes before it.
func TestFailuresOfNetworksAndStale(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.failures, s.stale, s.failureRecheck = true, time.Hour, 30*time.Second })
	w.fails(dns.RcodeServerFailure)
	w.ask("example.org.", dns.TypeA, from("192.0.2.0/24"))
	w.says(0, aRecord)
	if m, _ := w.ask("example.org.", dns.TypeA, from("198.51.100.0/24")); m == nil || m.Rcode != 0 {
		t.Errorf("got %v", m)
	}
	w.ask("example.org.", dns.TypeA, nil)
	w.clock.Store(400)
	w.fails(dns.RcodeServerFailure)
	for range 2 {
		if m, _ := w.ask("example.org.", dns.TypeA, nil); m == nil || m.Rcode != 0 || len(m.Answer) != 1 {
			t.Errorf("got %v", m)
		}
	}
}

// broken fails in the lane.
type broken struct {
	source
	asked int
}

func (s *broken) ServeWire(_ context.Context, w *wire.Reply, _ *wire.Query) wire.Outcome {
	s.asked++
	w.Fail(wire.ServFail, errors.New("nobody answers"))
	return wire.Done
}

func TestFailuresOnTheWire(t *testing.T) {
	s := new(broken)
	c := New()
	c.Next, c.failures = s, true
	for i := range 3 {
		q := query(t, "www.example.org.", nil)
		var w wire.Reply
		w.Reset(nil)
		if out := c.ServeWire(context.Background(), &w, q); out != wire.Done {
			t.Fatal(out)
		}
		if first := i == 0; w.Failed() != first || w.Holds() == first || first == (w.Err() == nil) || w.Rcode() != wire.ServFail || w.Holds() && w.Flag(wire.FlagAA) || s.asked != 1 {
			t.Errorf("query %d: failed %v, rcode %d, %v, asked %d times", i, w.Failed(), w.Rcode(), w.Err(), s.asked)
		}
	}
}

// What RFC 8767 recommends: who has an old entry gives it after 1.8 seconds, says so, and does not ask again for a while.
func TestStalePreset(t *testing.T) {
	for _, denial := range []bool{false, true} {
		w := newWorld(t, func(s *settings) {
			s.stale, s.verify, s.verifyTimeout, s.staleTTL, s.failureRecheck, s.staleEDE = presetStale, true, 20*time.Millisecond, presetTTL, presetRecheck, true
		})
		want := "3 "
		if w.says(0, aRecord); denial {
			w.says(dns.RcodeNameError, soa900)
			want = "19 "
		}
		if m, _ := w.ask("example.org.", dns.TypeA, from()); edesOf(m) != "no OPT" {
			t.Errorf("a fresh answer has %s", edesOf(m))
		}
		w.clock.Store(4000)
		w.below(func(dns.ResponseWriter, *dns.Msg) (int, error) {
			time.Sleep(40 * time.Millisecond)
			return dns.RcodeServerFailure, errors.New("nobody answers")
		})
		m, _ := w.ask("example.org.", dns.TypeA, from())
		if m == nil || edesOf(m) != want || append(m.Answer, m.Ns...)[0].Header().Ttl != 30 {
			t.Errorf("got %v", m)
		}
		eventually.Holds(t, "the failure", func() bool { return w.onlyWire(new(dns.Msg).SetQuestion("example.org.", dns.TypeA)) != nil })
		asked := w.asked.Load()
		q := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
		from()(q)
		if m := w.onlyWire(q); m == nil || edesOf(m) != want || w.asked.Load() != asked {
			t.Errorf("in the pause after a failure: %v, asked %d times", m, w.asked.Load()-asked)
		}
		w.clock.Store(4000 + 3600*25)
		if m, rcode := w.ask("example.org.", dns.TypeA, nil); m != nil || rcode != dns.RcodeServerFailure {
			t.Errorf("after a day: %v, %d", m, rcode)
		}
	}
}

// reason is an error that knows what clients may be told of it.
type reason struct{ error }

func (reason) ExtendedError() (uint16, string) { return 22, "both silent" }

// Resolves says that the plugin is a resolver: so has the reply RA that is kept.
func (reason) Resolves() {}

func TestFailuresTellWhy(t *testing.T) {
	w := newWorld(t, func(s *settings) { s.failures = true })
	w.below(func(dns.ResponseWriter, *dns.Msg) (int, error) {
		return dns.RcodeServerFailure, fmt.Errorf("plugin/x: %w", reason{errors.New("nobody answers")})
	})
	w.ask("example.org.", dns.TypeA, from())
	if m, _ := w.ask("example.org.", dns.TypeA, from()); m == nil || edesOf(m) != "13 , 22 both silent" || !m.RecursionAvailable {
		t.Errorf("got %v", m)
	}
	if len(edeCachedError) != 6 || len(failureEDE(errors.New("other"))) != 6 {
		t.Error("one failure tells of another")
	}
}
