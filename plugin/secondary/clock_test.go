package secondary

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
)

// A machine that was asleep looks at primaries as soon as it is awake, if that was due by then, and serves no zone that has
// expired meanwhile.
func TestAsleep(t *testing.T) {
	p := newPrimary(t)
	p.set("example.org.", text(1, "7200 3600 1209600", "www A 192.0.2.1"))
	var slept, looked atomic.Int64
	s := handler(t, "secondary", "secondary example.org {\ntransfer from "+p.addr+"\n}").(Secondary)
	shared := s.roster.rooms
	shared.now = func() time.Time {
		looked.Add(1)
		return steadyNow().Add(time.Duration(slept.Load()))
	}
	shared.watchEvery, shared.spread, shared.awakening = 10*time.Millisecond, 10*time.Millisecond, time.Hour
	for _, z := range s.roster.replicas {
		if err := z.source.prepare(findKey); err != nil {
			t.Fatal(err)
		}
	}
	s.roster.start(nil)
	t.Cleanup(s.roster.stop)
	becomes(t, s, "www.example.org.", "192.0.2.1")
	times := &s.roster.replica("example.org.").times
	over := func() bool { return timeOf(&times.refresh).After(shared.now().Add(time.Hour)) }
	eventually.Holds(t, "the look is over", over)

	before, next := looked.Load(), times.refresh.Swap(1)
	eventually.Holds(t, "somebody looks at the clock", func() bool { return looked.Load() > before+5 })
	if times.refresh.Swap(next) != 1 {
		t.Error("a zone looks at the clock without need")
	}

	p.set("example.org.", text(2, "7200 3600 1209600", "www A 192.0.2.2"))
	slept.Add(int64(3 * time.Hour))
	becomes(t, s, "www.example.org.", "192.0.2.2")
	eventually.Holds(t, "the look is over", over)

	// While a primary is asked what was young a moment ago is served: it may have been the clock alone.
	asked := p.queries.Load()
	p.mu.Lock() // no answer
	slept.Add(int64(15 * 24 * time.Hour))
	eventually.Holds(t, "the primary is asked", func() bool { return p.queries.Load() > asked })
	time.Sleep(50 * time.Millisecond) // in which it would expire
	answers := ask(t, s, "www.example.org.")
	p.mu.Unlock()
	if answers != "192.0.2.2" {
		t.Errorf("while a primary is asked: %s", answers)
	}
	eventually.Holds(t, "the look is over", over)

	p.down.Store(true)
	slept.Add(int64(15 * 24 * time.Hour))
	becomes(t, s, "www.example.org.", "SERVFAIL")
}

// Of a zone that has never been got, no times are told: not that of a clock that stands at its beginning.
func TestUnknownTimesAreNotTold(t *testing.T) {
	s := handler(t, "secondary", "secondary example.org {\ntransfer from 127.0.0.1:1\n}").(Secondary)
	for _, z := range s.ZoneStatus() {
		if !z.Refresh.IsZero() || !z.Expires.IsZero() {
			t.Errorf("the next look is at %v, the end at %v", z.Refresh, z.Expires)
		}
	}
	if n := len(s.ZoneStatus()); n != 1 {
		t.Errorf("%d zones", n)
	}
}
