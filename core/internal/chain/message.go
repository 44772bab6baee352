package chain

import (
	"context"
	"sync"
	"time"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// ServeDNS leads a query to the block that it belongs to and writes a reply to w: the
// chain's, or an error reply.
func (c *Chain) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) {
	run := &struct { // one piece of memory
		ctx    queryContext
		writer chainWriter
	}{ctx: queryContext{Context: ctx, server: c.Self, depth: depthIn(ctx)}}
	q, cw := &run.ctx, &run.writer
	*cw = chainWriter{ResponseWriter: w, ctx: q, req: r, finish: c.Finish}
	if r == nil || len(r.Question) == 0 || q.depth > maxDepth {
		c.refuse(cw, r, dns.RcodeServerFailure)
		return
	}
	if !c.Debug {
		asked := r.Question[0] // which plugins may change
		defer func() {
			if v := recover(); v != nil {
				c.recovered(v)
				r.Question = []dns.Question{asked}
				c.answer(cw, r, dns.RcodeServerFailure, nil)
			}
		}()
	}
	// What is turned down here enters no chain, so that no plugin need look at it: refuse and report count it.
	if severalOPT(r) {
		c.refuse(cw, r, dns.RcodeFormatError)
		return
	}
	if r.Question[0].Qclass != dns.ClassINET && !c.Classes {
		c.refuse(cw, r, dns.RcodeRefused)
		return
	}
	if m, err := edns.Version(r); err != nil {
		c.report(w, r, dns.RcodeBadVers, m)
		c.Finish.Sign(m, r, w)
		w.WriteMsg(m)
		return
	}
	if c.Finish.BadCookie(r) {
		c.refuse(cw, r, dns.RcodeFormatError)
		return
	}
	if from, ok := w.(carrier); ok && r.Opcode == dns.OpcodeUpdate {
		q.packet = from.Packet()
	}
	b, chainCtx := c.find(q, cw, r)
	if b == nil || b.head == nil {
		c.refuse(cw, r, dns.RcodeRefused)
		return
	}
	if !b.takes(r.Opcode) { // the listener takes it for another block
		c.refuse(cw, r, dns.RcodeNotImplemented)
		return
	}
	q.path.Trail = plugin.TrailFrom(ctx)
	if rc, err := b.serve(chainCtx, q, cw, r); !plugin.ClientWrite(rc) {
		c.answer(cw, r, rc, err)
	}
}

// serve has the first plugin of the block serve r, and notes it on the query's way. NextOrFailure notes those behind
// it.
func (b *block) serve(ctx context.Context, q *queryContext, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	q.path.Enter(b.head.Name())
	if q.path.Trail == nil {
		return b.head.ServeDNS(ctx, w, r)
	}
	q.path.Trail.Lead(r, b.Zone, *b.View)
	return q.path.Trail.Serve(ctx, b.head, w, r)
}

// nameSpace has memory for names in wire form: the router takes no other.
var nameSpace = sync.Pool{New: func() any { return new([wire.MaxName + 1]byte) }}

// find is the block of a query, with the context for its chain.
func (c *Chain) find(q *queryContext, w dns.ResponseWriter, r *dns.Msg) (*block, context.Context) {
	buf := nameSpace.Get().(*[wire.MaxName + 1]byte)
	defer nameSpace.Put(buf)
	name, err := wire.AppendName(buf[:0], r.Question[0].Name)
	if err != nil {
		return nil, nil // no name of any zone
	}
	wire.Lower(name, name)
	var chosen context.Context
	asked := question{name: name, ds: r.Question[0].Qtype == dns.TypeDS}
	if c.router.many {
		asked.client = wire.PeerOf(w.RemoteAddr(), nil).Client.Addr()
	}
	b := c.router.route(asked, func(b *block) bool {
		var ctx context.Context = q // metadata of a block that is not chosen goes with its context
		if b.collector != nil {
			ctx = b.collector.Collect(ctx, request.Request{Req: r, W: w})
		}
		for _, f := range *b.Filters {
			if !f(ctx, &request.Request{Req: r, W: w}) {
				return false
			}
		}
		chosen = ctx
		return true
	})
	if b != nil {
		q.view = *b.View
	}
	return b, chosen
}

// refuse answers a query that enters no chain, and counts it first: who has the reply finds itself counted.
func (c *Chain) refuse(w *chainWriter, r *dns.Msg, rc int) {
	if r == nil {
		return
	}
	m := errorReply(r, rc, nil)
	c.report(w, r, rc, m)
	c.Finish.Sign(m, r, w)
	w.WriteMsg(m)
}

// answer writes an error reply, with what err has for the client.
func (c *Chain) answer(w dns.ResponseWriter, r *dns.Msg, rc int, err error) {
	if r != nil {
		w.WriteMsg(errorReply(r, rc, err))
	}
}

// errorReply is the reply to a query that no plugin has answered.
func errorReply(r *dns.Msg, rc int, err error) *dns.Msg {
	m := new(dns.Msg).SetRcode(r, rc)
	if opt := reply.OPT(r); opt != nil {
		m.Extra = append(m.Extra, opt)
	}
	explain(m, err)
	return m
}

// report counts a query that entered no chain.
func (c *Chain) report(w dns.ResponseWriter, r *dns.Msg, rc int, m *dns.Msg) {
	state := request.Request{Req: r, W: w}
	vars.Report(c.Label, state, vars.Dropped, "", rcode.ToString(rc), "", m.Len(), time.Now())
}

// severalOPT reports whether a query has more than the one OPT record that it may have (RFC 6891 §6.1.1).
func severalOPT(r *dns.Msg) bool {
	n := 0
	for _, rr := range r.Extra {
		if rr.Header().Rrtype == dns.TypeOPT {
			n++
		}
	}
	return n > 1
}
