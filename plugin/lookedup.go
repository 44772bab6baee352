package plugin

import (
	"context"
	"sync/atomic"
)

// lookedUpKey is the context key of the name that was looked up last.
type lookedUpKey struct{}

// WithLookedUp is ctx in which the plugins below note the name that they look up, for a query in the message lane,
// and what tells the one noted last: "" if none was. Who logs queries puts it there; in the wire lane
// wire.Query.LookedUp tells it.
func WithLookedUp(ctx context.Context) (with context.Context, name func() string) {
	last := new(atomic.Pointer[string])
	return context.WithValue(ctx, lookedUpKey{}, last), func() string {
		if s := last.Load(); s != nil {
			return *s
		}
		return ""
	}
}

// NoteLookedUp notes that the plugins below look up name in place of the one that the query had. It costs next to
// nothing if nobody wants to know.
func NoteLookedUp(ctx context.Context, name string) {
	if last, ok := ctx.Value(lookedUpKey{}).(*atomic.Pointer[string]); ok {
		last.Store(&name)
	}
}
