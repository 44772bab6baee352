package chain

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// ServeWire leads q, which was parsed from its packet, to the block it belongs to. If the outcome is Done, reply is
// what goes to the client, nil for nothing; it lies in w's buffer. All other outcomes leave no trace.
func (c *Chain) ServeWire(w *wire.Reply, q *wire.Query) (reply []byte, out wire.Outcome) {
	var b *block
	// A panic costs one query, and not the process. Its reply is begun anew: nothing of a half-made one goes out, and
	// the question is the client's, whatever plugins have made of it.
	if !c.Debug {
		defer func() {
			if v := recover(); v != nil {
				c.recovered(v)
				if b != nil {
					b.leaveWire()
				}
				if q.Changed() && q.Parse(q.Packet()) {
					c.Finish.Check(q)
				}
				reply, out = c.failed(w, q, wire.ServFail), wire.Done
			}
		}()
	}
	// Blocks that have to see a message make it one; so does a name of no block, for the error reply.
	found, ok := c.router.find(q)
	if !ok || found == nil || found.wire == nil || found.left.Load() {
		return nil, wire.Unpack
	}
	b = found
	// Before the plugins, which may ask what the cookie tells.
	c.Finish.Check(q)
	if out = b.wire.ServeWire(b.ctx, w, q); out != wire.Done {
		return nil, out
	}
	switch {
	case w.Holds():
		return c.Finish.Wire(w, q), out
	case w.Failed() && !plugin.ClientWrite(w.Rcode()):
		return c.failed(w, q, w.Rcode()), out
	}
	return nil, out // a drop, or a return code that says that somebody has written
}

// leaveWire has b's queries served in the message lane from now on: a plugin has panicked in the wire lane, and what it
// cannot do there it may well do with a message.
func (b *block) leaveWire() {
	if !b.left.Swap(true) {
		log.Warningf("A plugin has panicked: zone %q is served without the wire lane from now on", b.Zone)
	}
}

// failed is an error reply to q.
func (c *Chain) failed(w *wire.Reply, q *wire.Query, rcode int) []byte {
	err := w.Err()
	w.Begin(q)
	w.SetRcode(rcode)
	explainWire(w, err)
	return c.Finish.WireError(w, q)
}

// blockContext is the context of all queries of a block in the wire lane: made once, so that a query pays for none.
// What differs from query to query stands in wire.Query.
type blockContext struct {
	context.Context
	server any
	block  *block
}

// Value implements context.Context.
func (c *blockContext) Value(key any) any {
	switch key.(type) {
	case plugin.ServerKey:
		return c.server
	case plugin.ViewKey:
		return *c.block.View
	case plugin.LoopKey:
		return 0
	}
	return nil
}
