package exec

import (
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// lookAgain is how long after nothing had been under way for long it is looked again.
const lookAgain = 10 * time.Millisecond

var began = time.Now()

// places are those of one kind that queries have which wait. One that waits gives its place to another one that has
// come when there is none left, if it has waited for long. Of names whose servers are silent no answer comes, and a few
// of these had all places otherwise.
type places struct {
	kind   eventloop.Place
	looked atomic.Int64 // when none had waited for long, since began
}

var (
	parkedPlaces = places{kind: eventloop.Parked}
	workPlaces   = places{kind: eventloop.AtWork}
)

// makeRoom has a query give its place away, and reports whether one did.
func (p *places) makeRoom() bool {
	since := int64(time.Since(began))
	if since-p.looked.Load() < int64(lookAgain) {
		return false
	}
	if !eventloop.MakeRoom(p.kind) {
		p.looked.Store(since)
		return false
	}
	return true
}

// crowded reports whether LaterOrDrop drops what would be parked: as many are as may be, and none of them gives way.
func crowded() bool { return full() && !makeRoom() }

func full() bool { return parked.Load() >= pool().most.Load() }

// makeRoom makes room for a query to be parked, when as many are as may be.
func makeRoom() bool {
	// Who waits for what was ended may wait on, for something else.
	for range 2 {
		if !parkedPlaces.makeRoom() {
			return false
		}
		if !full() {
			return true
		}
	}
	return false
}

// allAtWork reports whether Enter would have to wait for long: as many are at work as may be, and none of them gives
// its place away.
func allAtWork() bool {
	w := pool()
	w.mu.Lock()
	full := w.full()
	w.mu.Unlock()
	return full && !workPlaces.makeRoom()
}
