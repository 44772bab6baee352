package cache

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/status"
)

// stepped is the time that the machine tells at t when somebody has set its clock by d meanwhile: the monotonic reading
// is as it was. Package time makes no such value, so it is made of the value's first word: nanoseconds, and seconds
// above them.
func stepped(t time.Time, d time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(int64(d/time.Second) << 30)
	return t
}

func TestStepped(t *testing.T) {
	now := time.Now()
	for _, d := range []time.Duration{time.Hour, -time.Hour} {
		if s := stepped(now, d); s.UnixNano()-now.UnixNano() != int64(d) || s.Sub(now) != 0 {
			t.Errorf("%s: by the wall %d, else %s", d, s.UnixNano()-now.UnixNano(), s.Sub(now))
		}
	}
}

// How long a failure is kept, or an answer, does not depend on whether somebody sets the clock of the machine.
func TestClockIsSet(t *testing.T) {
	for _, rcode := range []int{dns.RcodeServerFailure, dns.RcodeSuccess} {
		var step atomic.Int64
		w := newWorld(t, nil)
		now := w.c.now
		w.c.now = func() time.Time { return stepped(now(), time.Duration(step.Load())) }
		w.says(rcode, "example.org. 5 IN A 192.0.2.1")
		if rcode == dns.RcodeServerFailure {
			w.says(rcode)
		}
		for _, d := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
			step.Store(0)
			w.count("example.org.", dns.TypeA)
			step.Store(int64(d))
			w.clock.Add(4)
			if asked, _ := w.count("example.org.", dns.TypeA); asked != 0 {
				t.Errorf("rcode %d, clock set by %s: it is gone", rcode, d)
			}
			w.clock.Add(2)
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
	if c.flushedAfter(stepped(time.Now(), -time.Hour)) {
		t.Error("nothing is kept since the clock was set back")
	}
	if !c.flushedAfter(stepped(before, time.Hour)) {
		t.Error("an answer from before the flush is kept")
	}
	fresh := New()
	fresh.prepare()
	if fresh.flushedAfter(time.Now()) {
		t.Error("nobody has flushed it")
	}
}
