package plugin

import (
	"sync"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// WireAdapter carries a decision that is made on bytes into the message lane: it has the query's facts and a Reply, and
// writes the reply as a message. So a source has one function that answers, and both lanes ask it.
type WireAdapter struct {
	Query wire.Query
	Reply wire.Reply

	w   dns.ResponseWriter
	r   *dns.Msg
	buf []byte
}

var adapters = sync.Pool{New: func() any { return &WireAdapter{buf: make([]byte, 4096)} }}

// NewWireAdapter is an adapter for r, or an error if r holds no proper question. Free gives it back.
func NewWireAdapter(w dns.ResponseWriter, r *dns.Msg) (*WireAdapter, error) {
	a := adapters.Get().(*WireAdapter)
	a.w, a.r = w, r
	a.Reply.Reset(a.buf)
	if err := a.Query.SetMsg(r, wire.PeerOf(w.RemoteAddr(), w.LocalAddr())); err != nil {
		a.Free()
		return nil, err
	}
	a.Query.SetMayBlock(true)
	return a, nil
}

// Free gives a back; nothing of it may be used any more.
func (a *WireAdapter) Free() {
	a.w, a.r = nil, nil
	a.Query.SetCrowded(nil, 0)
	adapters.Put(a)
}

// ReplyTaker is a writer that takes a reply as it lies in an adapter: a server's own, and those of plugins that need no
// more of a reply than that.
type ReplyTaker interface {
	// TakeReply sends w, a reply to r, and reports false if it has to be a message.
	TakeReply(w *wire.Reply, r *dns.Msg) (taken bool, err error)
}

// TakeReply has w, if it is a ReplyTaker, take a reply to r that lies in an adapter; it reports false if the reply has
// to be a message.
func TakeReply(w dns.ResponseWriter, reply *wire.Reply, r *dns.Msg) (taken bool, err error) {
	if t, ok := w.(ReplyTaker); ok {
		return t.TakeReply(reply, r)
	}
	return false, nil
}

// Write writes what the Reply holds and returns what ServeDNS is to return: after a
// message its rcode, or 0 if that rcode would say that nothing was written.
func (a *WireAdapter) Write() (int, error) {
	switch {
	case a.Reply.Failed():
		return a.Reply.Rcode(), a.Reply.Err()
	case a.Reply.Dropped():
		return dns.RcodeSuccess, nil
	}
	rcode := a.Reply.Rcode()
	if failed, err := a.write(); err != nil {
		return failed, err
	}
	if !ClientWrite(rcode) {
		return dns.RcodeSuccess, a.Reply.Err()
	}
	return rcode, a.Reply.Err()
}

// write returns what ServeDNS is to return with an error.
func (a *WireAdapter) write() (failed int, err error) {
	if taken, err := TakeReply(a.w, &a.Reply, a.r); taken {
		return dns.RcodeSuccess, err
	}
	m, err := a.Reply.MsgOPT(a.r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	return dns.RcodeSuccess, a.w.WriteMsg(m)
}
