// Package singleflight lets callers that want the same thing at the same time share one call for it. Any number of
// goroutines may share a Group. Start at Group.Do.
package singleflight

import (
	"errors"
	"sync"
)

// errAborted is what waiters get whose call did not return.
var errAborted = errors.New("singleflight: the call that was waited for panicked")

// Group knows the calls in flight, by key. The zero Group is ready; any number of goroutines may use it.
type Group struct {
	mu    sync.Mutex
	calls map[uint64]*call
}

// call is one call in flight. val and err are written before done is closed, and read after it.
type call struct {
	done chan struct{}
	val  any
	err  error
}

// Do calls fn and returns what it returns, unless a call for key is in flight: then it waits for that one and returns
// its results, which all callers share. Nothing is kept once the call is over.
//
// If fn panics, so does the Do that called it; those who waited get an error. The same goes for runtime.Goexit. fn must
// not call Do with its own key.
func (g *Group) Do(key uint64, fn func() (any, error)) (any, error) {
	g.mu.Lock()
	if c, ok := g.calls[key]; ok {
		g.mu.Unlock()
		<-c.done
		return c.val, c.err
	}
	c := &call{done: make(chan struct{}), err: errAborted} // until fn has returned
	if g.calls == nil {
		g.calls = make(map[uint64]*call)
	}
	g.calls[key] = c
	g.mu.Unlock()

	defer g.release(key, c)
	c.val, c.err = fn()
	return c.val, c.err
}

// release ends the call, however fn came to its end.
func (g *Group) release(key uint64, c *call) {
	g.mu.Lock()
	delete(g.calls, key)
	g.mu.Unlock()
	close(c.done)
}
