package chain

import (
	"context"
	"net"
	"sync"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// inlineHandler is a handler without a wire lane in whose place it stands there: it is called with a message, on
// the goroutine that reads queries, as it and all behind it say that they never wait.
type inlineHandler struct {
	plugin.Handler
	block *block
	rest  []plugin.Prompt // the handler and all behind it
}

// promptRest is the handlers of chain, nil if one of them does not know whether it is prompt.
func promptRest(chain []plugin.Handler) []plugin.Prompt {
	var rest []plugin.Prompt
	for _, h := range chain {
		p, ok := messageOnly(h).(plugin.Prompt) // what a handler has from one that it embeds says nothing of it
		if !ok {
			return nil
		}
		rest = append(rest, p)
	}
	return rest
}

// WireSelf returns p.
func (p *inlineHandler) WireSelf() plugin.Handler { return p }

// ServeWire calls the handler with a message, and takes what it writes.
func (p *inlineHandler) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	// Metadata is collected in the message lane, before the chain; and a query over TLS has a state that the writer
	// would have to tell.
	if p.block.collector != nil || !q.Plain {
		return wire.Unpack
	}
	for _, h := range p.rest {
		if !h.Prompt() {
			return wire.Unpack
		}
	}
	c := inlineCalls.Get().(*inlineCall)
	defer c.free()
	r, err := c.message.Set(q)
	if err != nil {
		return wire.Unpack
	}
	c.reply, c.query = w, q
	c.ctx.Context = ctx
	c.ctx.path = plugin.Path{}
	c.ctx.path.Enter(p.Name())
	rcode, err := p.Handler.ServeDNS(&c.ctx, c, r)
	switch {
	case c.written:
		w.SetWriter(c.ctx.path.Wrote())
		if err != nil {
			w.SetErrAs(rcode, err)
		}
	case !plugin.ClientWrite(rcode):
		w.Fail(rcode, err)
	default:
		w.Drop()
		w.SetErr(err)
	}
	return wire.Done
}

// inlineCall is one such call: the handler's context and its writer. It is used again.
type inlineCall struct {
	nonwriter.Unconnected
	ctx           inlineContext
	message       wire.Unpacked
	remote, local wire.AddrScratch
	reply         *wire.Reply
	query         *wire.Query
	written       bool
}

var inlineCalls = sync.Pool{New: func() any { return new(inlineCall) }}

// free gives c back. Nobody has kept anything of it, as all handlers have said.
func (c *inlineCall) free() {
	c.reply, c.query, c.ctx.Context, c.written = nil, nil, nil, false
	inlineCalls.Put(c)
}

// inlineContext is the block's context with the query's way through the chain.
type inlineContext struct {
	context.Context
	path plugin.Path
}

// Value is the block's, but for the path.
func (c *inlineContext) Value(key any) any {
	if _, ok := key.(plugin.PathKey); ok {
		return &c.path
	}
	return c.Context.Value(key)
}

// RemoteAddr and LocalAddr lie in memory of the call.
func (c *inlineCall) RemoteAddr() net.Addr { return c.remote.Set(c.query.Proto, c.query.Client) }
func (c *inlineCall) LocalAddr() net.Addr  { return c.local.Set(c.query.Proto, c.query.Local) }

// WriteMsg makes m the reply.
func (c *inlineCall) WriteMsg(m *dns.Msg) error {
	// Packed at once: m is the handler's again when this returns.
	if err := c.reply.SetMsg(m); err != nil {
		return err
	}
	if opt := m.IsEdns0(); opt != nil {
		c.reply.SetOptions(opt)
	}
	c.reply.SetRcode(m.Rcode)
	c.wrote()
	return nil
}

// TakeReply makes w the reply.
func (c *inlineCall) TakeReply(w *wire.Reply, _ *dns.Msg) (taken bool, err error) {
	c.reply.Copy(w)
	c.wrote()
	return true, nil
}

// Write makes the message that b holds the reply.
func (c *inlineCall) Write(b []byte) (int, error) {
	m := new(dns.Msg)
	if err := wire.UnpackInto(m, b); err != nil {
		return 0, err
	}
	return len(b), c.WriteMsg(m)
}

func (c *inlineCall) wrote() {
	c.ctx.path.Write()
	c.written = true
}
