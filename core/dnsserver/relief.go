package dnsserver

import (
	"sync"
	"time"
)

// relief sees to it that loops whose handlers wait are led by other goroutines.
type relief struct {
	mu      sync.Mutex
	turns   []*turn // of loops that have called handlers of late
	looking bool    // run is at it
}

// theRelief is that of all loops of the process.
var theRelief relief

const (
	// reliefPeriod is how often is looked at loops that call handlers: one that waits holds up others for so long at least, and for
	// twice as long at most.
	reliefPeriod = 4 * time.Millisecond
	// reliefRest is after how many looks nobody looks any more at a loop that calls none.
	reliefRest = 25
)

// watch has t looked at, from when its loop has entered a handler, until it enters none for long, or dismiss is called.
func (r *relief) watch(t *turn, led leader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.watched.Load() {
		return
	}
	t.led, t.place, t.calm = led, len(r.turns), 0
	t.watched.Store(true)
	r.turns = append(r.turns, t)
	if !r.looking {
		r.looking = true
		go r.run()
	}
}

// dismiss is called by who leads a loop that calls no handlers for a while, or ends.
func (r *relief) dismiss(t *turn) {
	if !t.watched.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.watched.Swap(false) {
		r.remove(t.place)
	}
}

// remove is called with mu held.
func (r *relief) remove(place int) {
	last := len(r.turns) - 1
	r.turns[place] = r.turns[last]
	r.turns[place].place = place
	r.turns[last] = nil
	r.turns = r.turns[:last]
}

func (r *relief) run() {
	ticks := time.NewTicker(reliefPeriod)
	defer ticks.Stop()
	for r.look() {
		<-ticks.C
	}
}

// look relieves those who are in the same handler as when it looked last. It reports false, and is called no more, if there is
// nobody to look at.
func (r *relief) look() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.turns) - 1; i >= 0; i-- {
		t := r.turns[i]
		n := t.n.Load()
		switch {
		case n != t.seen:
			t.seen, t.calm = n, 0
		case n%2 != 0:
			t.relieve(n)
		default:
			t.calm++
		}
		if t.calm < reliefRest {
			continue
		}
		t.watched.Store(false)
		if t.n.Load() == n { // else it has entered one, and may have thought that it is watched
			r.remove(i)
			continue
		}
		t.watched.Store(true)
	}
	r.looking = len(r.turns) > 0
	return r.looking
}
