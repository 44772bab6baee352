package plugin

import (
	"context"
	"net"

	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Prompt is a Handler that knows of its own ServeDNS that it never waits, apart from what it asks of the next plugin; that
// it writes one reply at most, before it returns; and that it keeps neither the writer nor the message, nor addresses got from
// them, after that. If all the plugins behind it say so, too, the server calls it on the goroutine that reads queries,
// with memory that is used again, which costs much less.
//
// It is for handlers that know no bytes; a WireHandler says Prompt so that those above it can.
type Prompt interface {
	Handler
	// Prompt reports whether that holds now. It is asked with each query.
	Prompt() bool
}

// Collect adds what plugins tell about a query to its context. The value of CollectKey in the context of a query in the wire lane
// is one, if anybody in its server block reads metadata.
type Collect func(ctx context.Context, state request.Request) context.Context

// CollectKey is the context key of a Collect.
type CollectKey struct{}

// NextMsg passes a query in the wire lane on to next in the message lane, as it stands after all changes, and returns the last message
// that was written, nil if there was none, with what ServeDNS returned. next may wait: a plugin calls NextMsg only where
// q.MayBlock says that it may, and ends in wire.Done after it.
//
// next gets the query's own addresses, and metadata if they are collected in the block, but no TLS state or TSIG status.
func NextMsg(ctx context.Context, next Handler, q *wire.Query) (m *dns.Msg, rcode int, err error) {
	if next == nil {
		return nil, dns.RcodeServerFailure, errNoNext
	}
	r, err := q.Msg()
	if err != nil {
		return nil, dns.RcodeServerFailure, err
	}
	w := &capture{remote: q.RemoteAddr(), local: q.LocalAddr()}
	if collect, ok := ctx.Value(CollectKey{}).(Collect); ok {
		ctx = collect(ctx, request.Request{Req: r, W: w})
	}
	rcode, err = next.ServeDNS(ctx, w, r)
	return w.msg, rcode, err
}

// capture is a writer that keeps the last message.
type capture struct {
	nonwriter.Unconnected
	remote, local net.Addr
	msg           *dns.Msg
}

func (c *capture) RemoteAddr() net.Addr { return c.remote }
func (c *capture) LocalAddr() net.Addr  { return c.local }

func (c *capture) WriteMsg(m *dns.Msg) error {
	c.msg = m
	return nil
}

func (c *capture) Write(b []byte) (int, error) {
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		return 0, err
	}
	c.msg = m
	return len(b), nil
}
