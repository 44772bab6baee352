package exec

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// lookAgain is how long after nothing had been under way for long it is looked again.
const lookAgain = 10 * time.Millisecond

var began = time.Now()

func init() { eventloop.SetAllAtWork(allAtWork) }

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

// allAtWork reports whether Enter would have to wait: as many are at work as may be, and none of them gives its place
// away.
func allAtWork() bool {
	w := pool()
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.makeRoom()
}

// makeRoom reports whether there is room for one more at work, or one gives way. mu is held, but not while others end.
func (w *workers) makeRoom() bool {
	if !w.full() {
		return true
	}
	if w.busy() >= w.max+max(w.max/wantShare, wantAtLeast) { // those who gave way went on for something else
		return false
	}
	w.mu.Unlock() // who waited may need a worker to go on
	defer w.mu.Lock()
	return workPlaces.makeRoom() // who gives way is done in a moment
}

// crowd are those that wait for one of the workers. mu guards it.
type crowd struct {
	waiting int
	given   int  // of these may go on, were it more than there may be: for them one gives way
	looking bool // look is to be called
}

// wait waits for room for one more at work, or for one to give way. It reports false if ctx ends before. mu is held.
func (w *workers) wait(ctx context.Context) bool {
	w.waiting++
	defer func() {
		w.waiting--
		w.given = min(w.given, w.waiting)
	}()
	for w.given == 0 && w.full() {
		if ctx.Err() != nil {
			w.free.Signal() // it may have been for us
			return false
		}
		w.lookLater()
		w.free.Wait()
	}
	w.given = max(w.given-1, 0)
	return true
}

func (w *workers) lookLater() {
	if !w.looking {
		w.looking = true
		time.AfterFunc(lookAgain, w.look)
	}
}

// look has others give way to those that wait. New queries that find one to do so would else go before them for ever.
func (w *workers) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looking = false
	for w.given < w.waiting && w.full() {
		if !w.makeRoom() {
			w.lookLater()
			return
		}
		w.given++
		w.free.Signal()
	}
}
