package exec

import (
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/service"

	"github.com/miekg/dns"
)

// A handler of which is not known that it never waits (see plugin.Prompt) is called by a worker, which costs as
// much again as most answers. Where handlers are always quick, the goroutine that reads a UDP socket calls them
// itself:
//
//	            inlineAfter quick calls in a row
//	workers ───────────────────────────────────────▶ inline
//	        ◀───────────────────────────────────────
//	            one that is not quick, or is taken over
//
// While a handler waits nevertheless, another goroutine takes the loop over:
//
//	lead ──▶ Call ──▶ handler ──▶ true: lead on
//	          │               ▲
//	          │ takeOverAfter └ false: somebody else leads, and this goroutine ends
//	          ▼
//	        takeOver: another goroutine leads, and the query counts as one that waits

// Inline tells whether the handlers of a listener are called inline.
type Inline struct{ quick atomic.Int32 } // calls in a row that were quick, at most inlineAfter

const (
	inlineAfter   = 4096
	takeOverAfter = 5 * time.Millisecond
)

// quickCall is what a call takes at most that is quick: less than what it takes to ask somebody else. Tests change it.
var quickCall = 25 * time.Microsecond

// AllowInline is false if workers are to call all handlers; the flag -dns.inline sets it.
var AllowInline = true

// Open reports whether handlers are called inline.
func (i *Inline) Open() bool { return i.quick.Load() >= inlineAfter }

// Close has workers call handlers until they have been quick for long again.
func (i *Inline) Close() { i.quick.Store(0) }

// Took notes how long a handler has taken.
func (i *Inline) Took(d time.Duration) {
	switch {
	case d > quickCall:
		i.Close()
	case AllowInline && i.quick.Load() < inlineAfter:
		i.quick.Add(1)
	}
}

// Lead is who leads a loop: one goroutine at a time, which calls all methods.
type Lead struct {
	// Run leads the loop until it ends, or a call reports that somebody else leads it.
	Run func()
	// Inflight counts queries whose goroutine leads no more.
	Inflight *service.Inflight
	Inline   *Inline

	calls atomic.Uint64 // odd while a handler is at work
	armed atomic.Bool   // the loop is about to call handlers
	timer *time.Timer   // calls takeOver
}

// Crowded is for the queries that the loop parses: whether LaterOrDrop drops what would be parked.
func (*Lead) Crowded() bool { return crowded() }

// Arm is called before handlers are, and Disarm after that.
func (l *Lead) Arm() {
	l.armed.Store(true)
	if l.timer == nil {
		l.timer = time.AfterFunc(takeOverAfter, l.takeOver)
		return
	}
	l.timer.Reset(takeOverAfter)
}

// Disarm ends what Arm began.
func (l *Lead) Disarm() {
	l.armed.Store(false)
	l.timer.Stop()
}

func (l *Lead) enter() (ticket uint64)           { return l.calls.Add(1) }
func (l *Lead) leave(ticket uint64) (leads bool) { return l.calls.CompareAndSwap(ticket, ticket+1) }

// Call has the handlers of s answer r, and reports whether the caller still leads the loop then; else he must not
// touch anything of it.
func (l *Lead) Call(s *service.Service, w dns.ResponseWriter, r *dns.Msg) (leads bool) {
	returned := s.Debug // then panics are to be seen
	ticket := l.enter()
	defer func() {
		leads = l.leave(ticket)
		switch {
		case !leads:
			pool().leave()
			l.Inflight.Done()
		case !returned: // a handler has ended this goroutine
			go l.Run()
		}
	}()
	s.ServeDNS(atWork, w, r) // it has the place once the loop is taken over
	returned = true
	return leads
}

// takeOver leads the loop on if its goroutine is in a handler.
func (l *Lead) takeOver() {
	ticket := l.calls.Load()
	if ticket%2 == 0 { // between two calls, or behind the last one
		if l.armed.Load() {
			l.timer.Reset(takeOverAfter)
		}
		return
	}
	l.Inflight.Add() // before it stops to be the loop's own
	pool().begin()
	if !l.leave(ticket) {
		pool().leave()
		l.Inflight.Done()
		l.timer.Reset(takeOverAfter)
		return
	}
	l.Inline.Close()
	l.Run()
}
