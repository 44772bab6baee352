package forward

import (
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// lookAgain is how long after no query had waited for long it is looked for one again.
const lookAgain = 10 * time.Millisecond

// looked is when it was found that none had.
var looked atomic.Int64

var epoch = time.Now()

// makeRoom reports whether there is room for q, which has come when as many wait as may: it takes the place of one that
// has waited for long. Of names whose servers are silent no answer comes, and a few of these had all places otherwise.
func makeRoom(q *wire.Query) bool {
	if !q.GivesWay() { // its places are others
		return false
	}
	since := int64(time.Since(epoch))
	if since-looked.Load() < int64(lookAgain) {
		return false
	}
	// Who waits for one that gave way may wait on, for another one.
	for range 2 {
		if !proxy.GiveWay() {
			looked.Store(since)
			return false
		}
		if !q.Crowded() {
			return true
		}
	}
	return false
}

// doubtInCrowd is doubt of the upstream of a query that gave way. There may be very many, of an upstream that is well,
// so it is checked once in a while only. It reports whether that is now, a time since epoch.
func (f *Forward) doubtInCrowd(up *proxy.Proxy, now int64) (checks bool) {
	last := f.doubted.Load()
	checks = now-last >= int64(lookAgain) && f.doubted.CompareAndSwap(last, now)
	if checks {
		f.doubt(up)
	} else if l := up.Latency(); l != nil {
		l.Missed()
	}
	return checks
}
