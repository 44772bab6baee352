package dnsserver

import (
	"context"
	"sync/atomic"

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
