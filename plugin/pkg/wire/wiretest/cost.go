package wiretest

import (
	"runtime"
	"testing"
	"time"

	"github.com/miekg/dns"
)

const (
	runs     = 7                // of which the quickest counts, so that other work on the machine does not
	hopeless = 20 * time.Second // one run takes no longer if its cost is of the message's order
)

// Compare fails if a reply costs f more than limit times what github.com/miekg/dns needs to unpack the ordinary one,
// which is about a millisecond where a name costs 100 nanoseconds. f must not keep or change the message.
func Compare(t *testing.T, limit float64, f func(t *testing.T, r *Reply)) {
	t.Helper()
	ordinary := Ordinary()
	unit := Cost(t, func() {
		if err := new(dns.Msg).Unpack(ordinary.Message); err != nil {
			t.Error(err)
		}
	})
	for _, r := range append(Hostile(), ordinary) {
		t.Run(r.Name, func(t *testing.T) {
			cost := Cost(t, func() { f(t, &r) })
			t.Logf("%v, %.2f times %v", cost, float64(cost)/float64(unit), unit)
			if float64(cost) > limit*float64(unit) {
				t.Errorf("got %v, want at most %v times %v", cost, limit, unit)
			}
		})
	}
}

// start is when time began.
var start = time.Now()

// Cost is the least that f works. It fails if f takes so long that there is no end in sight.
func Cost(t testing.TB, f func()) time.Duration {
	t.Helper()
	best := time.Duration(1<<63 - 1)
	for range runs {
		done := make(chan time.Duration, 1)
		go func() {
			// The clock is that of the thread, so f must stay on it.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			began := cpuTime()
			f()
			done <- cpuTime() - began
		}()
		select {
		case d := <-done:
			best = min(best, d)
		case <-time.After(hopeless):
			t.Fatalf("not done after %v", hopeless)
		}
	}
	return best
}
