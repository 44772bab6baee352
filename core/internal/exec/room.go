package exec

import (
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// lookAgain is how long after nothing had been under way for long it is looked again.
const lookAgain = 10 * time.Millisecond

var (
	began  = time.Now()
	looked atomic.Int64 // when nothing had, since began
)

// crowded reports whether LaterOrDrop drops what would be parked: as many are as may be, and none of them gives way.
func crowded() bool { return full() && !makeRoom() }

func full() bool { return parked.Load() >= pool().most.Load() }

// makeRoom has a query that is parked give way to one that has come when as many are as may be, if it has waited for
// long. Of names whose servers are silent no answer comes, and a few of these had all places otherwise.
func makeRoom() bool {
	since := int64(time.Since(began))
	if since-looked.Load() < int64(lookAgain) {
		return false
	}
	// Who waits for what was ended may wait on, for something else.
	for range 2 {
		if !eventloop.MakeRoom() {
			looked.Store(since)
			return false
		}
		if !full() {
			return true
		}
	}
	return false
}
