package service

import (
	"context"
	"sync/atomic"
	"time"
)

// Seat is the place of the Service that a transport works for. In a reload the next one sits down there, and the
// transport goes on with its connections: a query is served, from its begin to its end, by the Service that sat
// there when it began.
//
// There are two ways to tell a Service that a query of its own is not over: its Inflight, see Enter; and for
// connections whose goroutine answers by itself, what the connection holds, see Holder.
type Seat struct{ now atomic.Pointer[Service] }

// Now is who sits there.
func (p *Seat) Now() *Service { return p.now.Load() }

// Sit makes s the one who sits there.
func (p *Seat) Sit(s *Service) { p.now.Store(s) }

// Enter begins a query with who sits there. It is over when its Inflight is told so by Done.
func (p *Seat) Enter() *Service {
	for {
		s := p.now.Load()
		s.Inflight.Add()
		if p.now.Load() == s {
			return s
		}
		s.Inflight.Done() // it may have stopped waiting for its queries before it heard of this one
	}
}

// Holder is where a goroutine that serves one query after another says with whom it does that. It costs a query
// nothing.
type Holder struct{ held atomic.Pointer[Service] }

// Hold holds who sits at p, until Release or the next Hold.
func (h *Holder) Hold(p *Seat) *Service {
	for {
		s := p.now.Load()
		if h.held.Load() == s {
			return s
		}
		h.held.Store(s)
		if p.now.Load() == s {
			return s
		}
	}
}

// Holds reports whether s is held. Any goroutine may ask.
func (h *Holder) Holds(s *Service) bool { return h.held.Load() == s }

// Release holds nobody.
func (h *Holder) Release() {
	if h.held.Load() != nil {
		h.held.Store(nil)
	}
}

// Transport is what serves the sockets of a server, or some of them.
type Transport interface {
	// Stop makes it take no more queries, waits for those in flight until ctx ends, and closes its sockets.
	Stop(ctx context.Context) error
}

// Heirloom is a Transport that may outlive its Service.
type Heirloom interface {
	Transport
	// Sit makes s the Service of the transport.
	Sit(s *Service)
	// Holds reports whether a goroutine of the transport still holds s.
	Holds(s *Service) bool
}

// holdPause is how often is looked whether nobody holds a Service any more.
const holdPause = time.Millisecond

// LetGo waits until no query is in flight that began with s on one of the transports passed, which have another
// Service now.
func (s *Service) LetGo(ctx context.Context, passed []Heirloom) error {
	for _, t := range passed {
		for t.Holds(s) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(holdPause):
			}
		}
	}
	select {
	case <-s.Inflight.Drained():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
