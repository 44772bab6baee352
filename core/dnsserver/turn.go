package dnsserver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

// turn is whose turn it is to lead a loop: to read what comes, and to serve it. The goroutine that leads calls handlers of which is
// not known that they never wait; while one waits, the relief has another goroutine lead.
//
//	lead ──▶ enter ──▶ handler ──▶ leave ──▶ lead
//	              │               ▲
//	              │ it waits      └ false: others lead, and this goroutine ends
//	              ▼
//	            relieve: another goroutine leads
type turn struct {
	n atomic.Uint64 // odd while a handler is at work

	watched atomic.Bool // by the relief; written with its lock held

	// What the relief knows, with its lock.
	led   leader
	place int
	seen  uint64 // n, when it looked last
	calm  int    // for how many looks no handler has been called
}

// leader is a loop that has a turn.
type leader interface {
	base() *Server
	// waits is asked before another goroutine leads: the handler's query counts now as one that waits, unless that cannot be. It does
	// not wait.
	waits() bool
	// waited is called when that query has been served, also if that was just before another goroutine could lead.
	waited()
	// leadOn has another goroutine lead.
	leadOn()
}

// enter is called by who leads before he calls a handler, and leave after that, with what enter returned. He leads no more if leave
// reports false.
func (t *turn) enter() (ticket uint64) {
	ticket = t.n.Load() + 1
	t.n.Store(ticket)
	return ticket
}

func (t *turn) leave(ticket uint64) (leads bool) { return t.n.CompareAndSwap(ticket, ticket+1) }

// call leads a query to its handlers, and reports whether the caller still leads the loop then; else he must not touch anything of it.
func (t *turn) call(led leader, w *responder, r *dns.Msg) (leads bool) {
	returned := led.base().debug // then panics are to be seen
	ticket := t.enter()
	if !t.watched.Load() {
		theRelief.watch(t, led)
	}
	defer func() {
		leads = t.leave(ticket)
		switch {
		case !leads:
			waiting().leave()
			led.waited()
		case !returned: // a handler has ended this goroutine
			led.leadOn()
		}
	}()
	led.base().ServeDNS(context.Background(), w, r)
	returned = true
	return leads
}

// relieve has another goroutine lead the loop, if the handler still waits that ticket is for. The lock of the relief is held.
func (t *turn) relieve(ticket uint64) {
	if !t.led.waits() {
		return
	}
	waiting().begin()
	if !t.leave(ticket) {
		waiting().leave()
		t.led.waited()
		return
	}
	t.led.base().tempo.add(-relieved)
	t.led.leadOn()
}

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
