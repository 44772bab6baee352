package service

import (
	"sync"
	"sync/atomic"
)

// Inflight counts the queries that are worked on, for the end of who begins them. What begins queries is seldom the
// core that ends them, so that each has a count of its own, in a cache line of its own.
type Inflight struct {
	begun    atomic.Int64
	_        [56]byte
	ended    atomic.Int64
	draining atomic.Bool

	mu   sync.Mutex
	zero chan struct{} // closed when none is in flight after Drained was called
}

// Add begins a query, Done ends one, Busy reports whether there is any.
func (f *Inflight) Add()       { f.begun.Add(1) }
func (f *Inflight) Busy() bool { return f.ended.Load() != f.begun.Load() }
func (f *Inflight) Done() {
	if n := f.ended.Add(1); !f.draining.Load() || n != f.begun.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.zero != nil {
		close(f.zero)
		f.zero = nil
	}
}

// Count is how many queries there are.
func (f *Inflight) Count() int64 { return f.begun.Load() - f.ended.Load() }

// Drained is closed when no query is in flight. No more may be added.
func (f *Inflight) Drained() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan struct{})
	f.draining.Store(true) // who is done after this looks at zero
	if !f.Busy() {
		close(c)
	} else {
		f.zero = c
	}
	return c
}
