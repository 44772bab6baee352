package eventloop

import (
	"sync"
	"sync/atomic"
)

// Exchange is something that a query waits for without a goroutine: a question sent upstream, or another query's
// answer.
type Exchange interface {
	// Then calls r.Resume when the exchange has ended, once: at once if it has, else from the goroutine that ends it.
	Then(r Resumer)
}

// Resumer is who waits for an exchange.
type Resumer interface {
	// Resume must return soon: the goroutine that calls it has others to tell.
	Resume()
}

// LoopResumer is a Resumer that can go on in the batch of the goroutine that ends the exchange.
type LoopResumer interface {
	Resumer
	// ResumeIn is Resume for a caller who is in a loop, and will leave it soon. It reports whether the exchange is
	// of no use any more to who has waited.
	ResumeIn(l *Loop) (done bool)
}

// Waiter is a goroutine that waits for an exchange: Resume lets it receive.
type Waiter chan struct{}

// Resume implements Resumer.
func (w Waiter) Resume() { close(w) }

// OwnedExchange is an Exchange that is used again when all that waited for it are done with it, among them the
// query that began it.
type OwnedExchange interface {
	Exchange
	// ThenOwner is Then for that query.
	ThenOwner(r Resumer)
}

// Ending is the part of an Exchange that tells those who wait for it. The zero Ending has not ended. Any number of
// goroutines may call its methods.
type Ending struct {
	over    atomic.Bool
	mu      sync.Mutex
	owned   bool       // who began it waits; guarded by mu
	waiters []Resumer  // guarded by mu
	room    [2]Resumer // of waiters: there are seldom more
}

// Over reports whether End has been called. What was written before that call may then be read.
func (e *Ending) Over() bool { return e.over.Load() }

// Then implements Exchange.
func (e *Ending) Then(r Resumer) { e.then(r, false) }

// ThenOwner implements OwnedExchange.
func (e *Ending) ThenOwner(r Resumer) { e.then(r, true) }

func (e *Ending) then(r Resumer, owner bool) {
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
	e.owned = e.owned || owner
	e.mu.Unlock()
}

// End ends the exchange and resumes those who wait for it. It is called once.
func (e *Ending) End() { e.EndIn(nil) }

// EndIn is End for a caller who is in a loop, in which those who wait may go on; nil is none. It reports whether
// who began the exchange has waited for it, and all who did are done with it: then nobody knows it any more.
func (e *Ending) EndIn(l *Loop) (done bool) {
	e.mu.Lock()
	e.over.Store(true)
	waiters := e.waiters
	e.waiters = nil
	done = e.owned
	e.mu.Unlock()
	for _, r := range waiters {
		if in, ok := r.(LoopResumer); ok && l != nil {
			done = in.ResumeIn(l) && done
			continue
		}
		r.Resume()
		done = false
	}
	return done
}

// Anew makes an Ending that nobody knows one that has not ended.
func (e *Ending) Anew() {
	e.over.Store(false)
	e.owned, e.waiters, e.room = false, nil, [2]Resumer{}
}
