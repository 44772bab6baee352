package chain

import (
	"context"
	"crypto/tls"
	"net/netip"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// queryContext is the context of one query in the message lane. It holds what
// plugins ask the server's context keys for, so that no chain of contexts is made for it.
type queryContext struct {
	context.Context
	server any
	path   plugin.Path
	view   string
	depth  int    // 0 for a client's query, else one more than that of the query for which a plugin asks this one
	packet []byte // of an UPDATE, as it came
}

// depthKey holds the depth of a query.
type depthKey struct{}

// maxDepth bounds questions of plugins' own for questions of plugins' own: a plugin that asks for what it is asked
// would have the stack outgrow its limit, which ends the process. Plugins that follow aliases stop long before; see
// LoopKey.
const maxDepth = 32

// depthIn is the depth of a query that is asked in ctx.
func depthIn(ctx context.Context) int {
	if ctx.Value(plugin.ServerKey{}) == nil {
		return 0
	}
	above, _ := ctx.Value(depthKey{}).(int) // none in the wire lane, where all queries are clients'
	return above + 1
}

// Value is what the transport's context has, and the server's own values.
func (c *queryContext) Value(key any) any {
	switch key.(type) {
	case plugin.ServerKey:
		return c.server
	case plugin.PathKey:
		return &c.path
	case plugin.ViewKey:
		return c.view
	case plugin.PacketKey:
		return c.packet
	case plugin.LoopKey:
		// Not ours alone: plugins count it up in the context that they hand on. Of those that do not, the first
		// question is taken for one about something else, and those that it leads to are not.
		n, _ := c.Context.Value(plugin.LoopKey{}).(int)
		return max(n, c.depth-1)
	case plugin.InnerKey:
		return c.depth > 0
	case eventloop.PlaceKey:
		if c.depth > 0 {
			return nil // of whom asks, nobody knows where that is done
		}
	case depthKey:
		return c.depth
	}
	return c.Context.Value(key)
}

// carrier is a writer that has its query as it came.
type carrier interface{ Packet() []byte }

// chainWriter is the writer that the chain's first plugin gets: each message that is
// written to it is made to fit the client, and which plugin wrote is noted.
type chainWriter struct {
	dns.ResponseWriter
	ctx    *queryContext
	req    *dns.Msg
	finish *reply.Finisher
}

// fitter is a writer of a transport of ours, which makes a reply fit its client while packing.
type fitter interface {
	WriteFit(m, req *dns.Msg) error
}

// WriteMsg writes m, a reply to the query.
func (w *chainWriter) WriteMsg(m *dns.Msg) error {
	w.ctx.path.Write()
	if f, ok := w.ResponseWriter.(fitter); ok {
		return f.WriteFit(m, w.req)
	}
	addr := netip.Addr{}
	if !plugin.Inner(w.ctx) {
		addr = wire.AddrOf(w.RemoteAddr())
	}
	w.finish.FitMsg(m, w.req, w.ResponseWriter, addr)
	return w.ResponseWriter.WriteMsg(m)
}

// TakeReply takes what a plugin that this server gave the query has decided by an adapter, unless it is of a rare kind.
func (w *chainWriter) TakeReply(r *wire.Reply, req *dns.Msg) (taken bool, err error) {
	to, ok := w.ResponseWriter.(*reply.Writer)
	if !ok || req != w.req || len(req.Question) != 1 || r.Rcode() > 0xF || req.IsTsig() != nil {
		return false, nil
	}
	w.ctx.path.Write()
	return true, to.WriteTaken(r, req)
}

// Write sends b as it is.
func (w *chainWriter) Write(b []byte) (int, error) {
	w.ctx.path.Write()
	return w.ResponseWriter.Write(b)
}

// ConnectionState implements dns.ConnectionStater.
func (w *chainWriter) ConnectionState() *tls.ConnectionState {
	return plugin.ConnectionState(w.ResponseWriter)
}
