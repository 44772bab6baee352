package plugin

import (
	"context"
	"reflect"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

var errOnce = corefile.ErrOnce

// WireHandler is a Handler that can also serve a query as bytes.
type WireHandler interface {
	Handler
	// ServeWire decides q into w and returns wire.Done, or passes q on with NextWire and
	// hands up what came back, or says where the query must be run instead.
	//
	// Nothing observable happens before Done: who counts, logs or changes replies calls
	// the next one first and acts on Done only. Who has sent something, drawn lots, or
	// joined others may only end in Done. Who changes q restores it, unless it was decided with what was changed:
	// the size that bufsize sets is the one by which the reply is cut.
	// Neither w nor q may be kept.
	ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome

	// WireSelf returns the receiver. The server uses ServeWire of h only if h.WireSelf()
	// is of h's own type: a type that embeds another plugin and overrides ServeDNS
	// inherits ServeWire and would be bypassed.
	WireSelf() Handler
}

// HasWire reports whether h has a wire lane of its own, and not only one of a handler that it embeds, which knows
// nothing of what h does in ServeDNS; see WireHandler.WireSelf.
func HasWire(h Handler) bool {
	w, ok := h.(WireHandler)
	return ok && reflect.TypeOf(w.WireSelf()) == reflect.TypeOf(h)
}

// NextWire passes q on to next, the twin of NextOrFailure. A next plugin that has no
// wire lane means Unpack.
func NextWire(name string, next Handler, ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome { //nolint:revive // in the order of NextOrFailure
	if next == nil {
		w.Fail(wire.ServFail, Error(name, errNoNext))
		return wire.Done
	}
	if h, ok := next.(WireHandler); ok {
		return h.ServeWire(ctx, w, q)
	}
	return wire.Unpack
}
