package dnsserver

import (
	"context"
	"crypto/tls"
	"strings"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// queryContext is the context of one query in the message lane. It holds what
// plugins ask the server's context keys for, so that no chain of contexts is made for it.
type queryContext struct {
	context.Context
	server *Server
	path   plugin.Path
	view   string
}

// Value is what the transport's context has, and the server's own values.
func (c *queryContext) Value(key any) any {
	switch key.(type) {
	case Key:
		return c.server
	case plugin.PathKey:
		return &c.path
	case ViewKey:
		return c.view
	case LoopKey:
		if n := c.Context.Value(LoopKey{}); n != nil {
			return n // the query comes from a plugin further up
		}
		return 0
	case innerKey:
		return c.Context.Value(Key{}) != nil
	}
	return c.Context.Value(key)
}

type innerKey struct{}

// Inner reports whether the query of ctx is a question of a plugin's own (package upstream), and not one of a client.
func Inner(ctx context.Context) bool {
	inner, _ := ctx.Value(innerKey{}).(bool)
	return inner
}

// chainWriter is the writer that the chain's first plugin gets: each message that is
// written to it is made to fit the client, and which plugin wrote is noted.
type chainWriter struct {
	dns.ResponseWriter
	ctx     *queryContext
	req     *dns.Msg
	written atomic.Bool
}

// fitter is a writer of a transport that makes a reply fit its client while packing.
type fitter interface {
	writeFit(m, req *dns.Msg) error
}

func (w *chainWriter) WriteMsg(m *dns.Msg) error {
	w.ctx.path.Write()
	w.written.Store(true)
	if f, ok := w.ResponseWriter.(fitter); ok {
		return f.writeFit(m, w.req)
	}
	state := request.Request{Req: w.req, W: w.ResponseWriter}
	state.SizeAndDo(m)
	if !Inner(w.ctx) {
		w.ctx.server.addCookie(m, w.req, addrOf(w.RemoteAddr()))
	}
	state.Scrub(m)
	return w.ResponseWriter.WriteMsg(m)
}

// TakeReply takes what a plugin that this server gave the query has decided in a lane, unless it is of a rare kind.
func (w *chainWriter) TakeReply(reply *wire.Reply, r *dns.Msg) (taken bool, err error) {
	to, ok := w.ResponseWriter.(*responder)
	if !ok || r != w.req || len(r.Question) != 1 || reply.Rcode() > 0xF || r.IsTsig() != nil {
		return false, nil
	}
	w.ctx.path.Write()
	w.written.Store(true)
	return true, to.takeReply(reply, r)
}

func (w *chainWriter) Write(b []byte) (int, error) {
	w.ctx.path.Write()
	w.written.Store(true)
	return w.ResponseWriter.Write(b)
}

// ConnectionState is the TLS state of the query's connection, nil if there is none.
func (w *chainWriter) ConnectionState() *tls.ConnectionState {
	if c, ok := w.ResponseWriter.(dns.ConnectionStater); ok {
		return c.ConnectionState()
	}
	return nil
}

// optOf is the OPT record for a reply to req, nil if req has none.
func optOf(req *dns.Msg) *dns.OPT {
	asked := req.IsEdns0()
	if asked == nil {
		return nil
	}
	opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT, Ttl: asked.Hdr.Ttl & 0xff00}}
	opt.SetUDPSize(edns.ReplySize(asked.UDPSize()))
	return opt
}

// AsSent is a copy of m, a reply to req, as the client at the other end of w gets it: with an OPT record if it sent one, and cut to its
// size. m is not changed. It is for plugins in the message lane that tell others what was sent; padding and the like of a transport's own
// are left out.
func (s *Server) AsSent(m, req *dns.Msg, w dns.ResponseWriter) *dns.Msg {
	sent := *m
	sent.Compress = true
	sent.Extra = make([]dns.RR, len(m.Extra))
	for i, rr := range m.Extra {
		if opt, ok := rr.(*dns.OPT); ok {
			rr = dns.Copy(opt)
		}
		sent.Extra[i] = rr
	}
	trans, _, _ := strings.Cut(s.Addr, "://")
	s.fit(&sent, request.Request{Req: req, W: w}, trans == transport.QUIC || trans == transport.HTTPS3)
	return &sent
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
