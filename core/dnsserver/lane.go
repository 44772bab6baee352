package dnsserver

import (
	"context"
	"flag"
	"slices"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// WireLane says whether Servers made from now on serve queries as bytes where the plugins of a block can do that. Without
// it, all take the message lane, which gives the same answers: it is for finding faults.
var WireLane = true

func init() {
	flag.BoolVar(&WireLane, serverType+".wire", true, "Serve queries as bytes where plugins can")
}

// serveWire leads q, which was parsed from its packet, to the block it belongs to. If the outcome is Done, reply is
// what goes to the client, nil for nothing; it lies in w's buffer. All other outcomes leave no trace.
func (s *Server) serveWire(w *wire.Reply, q *wire.Query) (reply []byte, out wire.Outcome) {
	if !s.debug {
		defer func() {
			if v := recover(); v != nil {
				s.recovered(v)
				reply, out = s.failed(w, q, wire.ServFail), wire.Done
			}
		}()
	}
	b, ok := s.router.find(q)
	if !ok || b == nil || b.wire == nil || q.EDNS().Set&(wire.HasNSID|wire.HasExpire|wire.HasOther) != 0 {
		return nil, wire.Unpack
	}
	s.judge(q)
	if out = b.wire.ServeWire(b.ctx, w, q); out != wire.Done {
		return nil, out
	}
	switch {
	case w.Holds():
		return s.finish(w, q, edns.ReplySize(q.EDNS().Size)), out
	case w.Failed() && !plugin.ClientWrite(w.Rcode()):
		return s.failed(w, q, w.Rcode()), out
	}
	return nil, out // a drop, or a return code that says that somebody has written
}

// failed is an error reply to q.
func (s *Server) failed(w *wire.Reply, q *wire.Query, rcode int) []byte {
	err := w.Err()
	w.Begin(q)
	w.SetRcode(rcode)
	explainWire(w, err)
	return s.finish(w, q, edns.ReplySize(q.EDNS().Size))
}

// blockContext is the context of all queries of a block in the wire lane.
type blockContext struct {
	context.Context
	server *Server
	block  *block
}

// Value implements context.Context.
func (c *blockContext) Value(key any) any {
	switch key.(type) {
	case Key:
		return c.server
	case ViewKey:
		return c.block.ViewName
	case LoopKey:
		return 0
	case plugin.CollectKey:
		if c.block.collector != nil {
			return plugin.Collect(c.block.collector.Collect)
		}
	}
	return nil
}

// anyWire reports whether any block has a chain for the wire lane.
func anyWire(blocks []*block) bool {
	return slices.ContainsFunc(blocks, func(b *block) bool { return b.wire != nil })
}
