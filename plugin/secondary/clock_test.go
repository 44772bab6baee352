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
	var slept atomic.Int64
	s := handler(t, "secondary", "secondary example.org {\ntransfer from "+p.addr+"\n}").(Secondary)
	shared := s.roster.rooms
	shared.now = func() time.Time { return steadyNow().Add(time.Duration(slept.Load())) }
	shared.longestNap = 20 * time.Millisecond
	for _, z := range s.roster.replicas {
		if err := z.source.prepare(findKey); err != nil {
			t.Fatal(err)
		}
	}
	s.roster.start(nil)
	t.Cleanup(s.roster.stop)
	becomes(t, s, "www.example.org.", "192.0.2.1")
	times := &s.roster.replica("example.org.").times
	eventually.Holds(t, "the look is over", func() bool { return timeOf(&times.refresh).After(shared.now().Add(time.Hour)) })

	p.set("example.org.", text(2, "7200 3600 1209600", "www A 192.0.2.2"))
	slept.Add(int64(3 * time.Hour))
	becomes(t, s, "www.example.org.", "192.0.2.2")

	p.down.Store(true)
	slept.Add(int64(15 * 24 * time.Hour))
	becomes(t, s, "www.example.org.", "SERVFAIL")
}
