package plugin

import (
	"context"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
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

// Lane carries a decision that is made on bytes into the message lane: it has the
// query's facts and a Reply, and writes the reply as a message. So a source has one
// function that answers, and both lanes ask it.
type Lane struct {
	Query wire.Query
	Reply wire.Reply

	w   dns.ResponseWriter
	r   *dns.Msg
	buf []byte
}

var lanes = sync.Pool{New: func() any { return &Lane{buf: make([]byte, 4096)} }}

// NewLane is a Lane for r, or an error if r holds no proper question. Free gives it back.
func NewLane(w dns.ResponseWriter, r *dns.Msg) (*Lane, error) {
	l := lanes.Get().(*Lane)
	l.w, l.r = w, r
	l.Reply.Reset(l.buf)
	if err := l.Query.SetMsg(r, wire.PeerOf(w.RemoteAddr(), w.LocalAddr())); err != nil {
		l.Free()
		return nil, err
	}
	l.Query.SetMayBlock(true)
	return l, nil
}

// Free gives l back; nothing of it may be used any more.
func (l *Lane) Free() {
	l.w, l.r = nil, nil
	lanes.Put(l)
}

// ReplyTaker is a writer that takes a reply as it lies in a Lane: a server's own, and those of plugins that need no
// more of a reply than that.
type ReplyTaker interface {
	// TakeReply sends w, a reply to r, and reports false if it has to be a message.
	TakeReply(w *wire.Reply, r *dns.Msg) (taken bool, err error)
}

// TakeReply has w, if it is a ReplyTaker, take a reply to r that lies in a Lane; it reports false if the reply has
// to be a message.
func TakeReply(w dns.ResponseWriter, reply *wire.Reply, r *dns.Msg) (taken bool, err error) {
	if t, ok := w.(ReplyTaker); ok {
		return t.TakeReply(reply, r)
	}
	return false, nil
}

// Write writes what the Reply holds and returns what ServeDNS is to return: after a
// message its rcode, or 0 if that rcode would say that nothing was written.
func (l *Lane) Write() (int, error) {
	switch {
	case l.Reply.Failed():
		return l.Reply.Rcode(), l.Reply.Err()
	case l.Reply.Dropped():
		return dns.RcodeSuccess, nil
	}
	rcode := l.Reply.Rcode()
	if failed, err := l.write(); err != nil {
		return failed, err
	}
	if !ClientWrite(rcode) {
		return dns.RcodeSuccess, l.Reply.Err()
	}
	return rcode, l.Reply.Err()
}

// write returns what ServeDNS is to return with an error.
func (l *Lane) write() (failed int, err error) {
	if taken, err := TakeReply(l.w, &l.Reply, l.r); taken {
		return dns.RcodeSuccess, err
	}
	m, err := l.Reply.Msg(l.r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	return dns.RcodeSuccess, l.w.WriteMsg(m)
}
