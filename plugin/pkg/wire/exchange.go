package wire

import (
	"sync"
	"sync/atomic"
)

// Exchange is something that a query waits for without a goroutine: a question sent upstream, or another query's answer.
type Exchange interface {
	// Then calls r.Resume when the exchange has ended, once: at once if it has, else from the goroutine that ends it.
	Then(r Resumer)
}

// Resumer is who waits for an exchange.
type Resumer interface {
	// Resume must return soon: the goroutine that calls it has others to tell.
	Resume()
}

// LaneResumer is a Resumer that can go on in the batch of the goroutine that ends the exchange.
type LaneResumer interface {
	Resumer
	// ResumeIn is Resume for a caller who is in a lane, and will leave it soon.
	ResumeIn(l *Lane)
}

// Ending is the part of an Exchange that tells those who wait for it. The zero Ending has not ended. Any number of goroutines
// may call its methods.
type Ending struct {
	over    atomic.Bool
	mu      sync.Mutex
	waiters []Resumer  // guarded by mu
	room    [2]Resumer // of waiters: there are seldom more
}

// Over reports whether End has been called. What was written before that call may then be read.
func (e *Ending) Over() bool { return e.over.Load() }

// Then implements Exchange.
func (e *Ending) Then(r Resumer) {
	e.mu.Lock()
	if e.over.Load() {
		e.mu.Unlock()
		r.Resume()
		return
	}
	if e.waiters == nil {
		e.waiters = e.room[:0]
	}
	e.waiters = append(e.waiters, r)
	e.mu.Unlock()
}

// End ends the exchange and resumes those who wait for it. It is called once.
func (e *Ending) End() { e.EndIn(nil) }

// EndIn is End for a caller who is in a lane, in which those who wait may go on; nil is none.
func (e *Ending) EndIn(l *Lane) {
	e.mu.Lock()
	e.over.Store(true)
	waiters := e.waiters
	e.waiters = nil
	e.mu.Unlock()
	for _, r := range waiters {
		if in, ok := r.(LaneResumer); ok && l != nil {
			in.ResumeIn(l)
			continue
		}
		r.Resume()
	}
}

// Await says what q waits for, before Park is returned. It is what the run after it finds in Awaited.
func (q *Query) Await(x Exchange) { q.awaited = x }

// Awaited is the exchange that q was parked on and that has ended, nil on a first run. Before a plugin waits for
// another one, it calls Await again.
func (q *Query) Awaited() Exchange { return q.awaited }
