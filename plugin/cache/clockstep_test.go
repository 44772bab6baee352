package cache

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/steady/steadytest"
)

// farthest is how far ahead the clock was set so far: the process has one steady clock.
var farthest time.Duration

// How long a failure is kept, or an answer, does not depend on whether somebody sets the clock of the machine back. A machine
// that was asleep looks like one whose clock was set ahead: what it kept is over.
func TestClockIsSet(t *testing.T) {
	for _, rcode := range []int{dns.RcodeServerFailure, dns.RcodeSuccess} {
		var step atomic.Int64
		w := newWorld(t, nil)
		now := w.c.now
		w.c.now = func() time.Time { return steadytest.Stepped(now(), time.Duration(step.Load())) }
		w.says(rcode, "example.org. 5 IN A 192.0.2.1")
		if rcode == dns.RcodeServerFailure {
			w.says(rcode)
		}
		farthest += 24 * time.Hour
		for i, to := range []time.Duration{-time.Hour, farthest, -time.Hour} {
			w.count("example.org.", dns.TypeA)
			d := to - time.Duration(step.Swap(int64(to)))
			w.clock.Add(4)
			if asked, _ := w.count("example.org.", dns.TypeA); asked != 0 != (i == 1) {
				t.Errorf("rcode %d, clock set by %s: asked %d times", rcode, d, asked)
			}
			w.clock.Add(6)
			if asked, _ := w.count("example.org.", dns.TypeA); asked != 1 {
				t.Errorf("rcode %d, clock set by %s: it is still there", rcode, d)
			}
			w.clock.Add(6)
		}
	}
}

// What was asked for after a flush is kept, and what was asked for before it is not, though the clock was set.
func TestClockIsSetAtAFlush(t *testing.T) {
	c := New()
	before := time.Now()
	c.CacheFlush(status.Match{Name: []byte{0}, Below: true})
	time.Sleep(time.Millisecond) // the clock may be coarse
	for _, d := range []time.Duration{-time.Hour, time.Hour} {
		if c.flushedAfter(steadytest.Stepped(time.Now(), d)) {
			t.Errorf("nothing is kept since the clock was set by %s", d)
		}
	}
	if !c.flushedAfter(before) {
		t.Error("an answer from before the flush is kept")
	}
	fresh := New()
	fresh.prepare()
	if fresh.flushedAfter(time.Now()) {
		t.Error("nobody has flushed it")
	}
}
