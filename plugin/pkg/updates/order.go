package updates

import (
	"context"
	"sync"
)

// Order is the order of the messages of one connection that are under way: who sends several, and waits for no answer
// between them, means them to take effect in this order. Its zero value is that of a connection without any.
type Order struct {
	mu  sync.Mutex
	all []*Position // the oldest first
}

// Position is that of one message in an Order. Who decides about the message waits until it is the oldest, and ends
// that when it is decided; what is written and answered after that may overlap. Its methods may be called with nil,
// which is the position of a message without others.
type Position struct {
	order *Order
	over  bool
	first chan struct{} // closed when it is the oldest
}

// Begin is the Position of the message that came last. It has to end.
func (o *Order) Begin() *Position {
	p := &Position{order: o, first: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all = append(o.all, p); len(o.all) == 1 {
		close(p.first)
	}
	return p
}

// Await waits until all messages before are decided. The error is that of ctx, which may end before.
func (p *Position) Await(ctx context.Context) error {
	if p == nil {
		return nil
	}
	select {
	case <-p.first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// End ends a Position, which may not have been awaited. To end it again does nothing.
func (p *Position) End() {
	if p == nil {
		return
	}
	o := p.order
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.over {
		return
	}
	p.over = true
	if o.all[0] != p {
		return
	}
	for len(o.all) > 0 && o.all[0].over {
		o.all = o.all[1:]
	}
	if len(o.all) > 0 {
		close(o.all[0].first)
	}
}

type positionKey struct{}

// WithPosition is ctx for a message that has one.
func WithPosition(ctx context.Context, p *Position) context.Context {
	return context.WithValue(ctx, positionKey{}, p)
}

// PositionOf is that of a message, nil if it has none.
func PositionOf(ctx context.Context) *Position {
	p, _ := ctx.Value(positionKey{}).(*Position)
	return p
}
