package plugin

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Editor is a plugin that changes the replies of the plugins below it. It has one rule for replies as bytes, which both
// lanes use, and one for messages, which plugins that know no bytes write.
//
//	                  wire lane: EditWire ──▶ Edit
//	message lane:  EditReplies ──reply of a WireAdapter──▶ Edit ──▶ taken further up, or a message there
//	                           └──message───────────────▶ EditMsg ──▶ message
//
// A reply that lies in an adapter is edited where it lies: nobody unpacks it that the next one packs again.
type Editor interface {
	Handler
	// Edit changes the reply that w holds to q.
	Edit(w *wire.Reply, q *wire.Query)
	// EditMsg is Edit for a message, a reply to r. It returns m or a copy. Records and slices of m stay as they
	// are, for whoever wrote them may keep them.
	EditMsg(m, r *dns.Msg) *dns.Msg
}

// RawWatcher is an Editor that is told when a plugin below writes octets (Write), which stay as they are.
type RawWatcher interface {
	// RawWritten is called once for each Write, before it.
	RawWritten()
}

// EditWire is ServeWire of an Editor: it passes q on to next, and has the reply that comes back edited.
func EditWire(e Editor, next Handler, ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome { //nolint:revive // as NextWire
	out := NextWire(e.Name(), next, ctx, w, q)
	if out == wire.Done && w.Holds() {
		e.Edit(w, q)
	}
	return out
}

// EditReplies is ServeDNS of an Editor: it passes r on to next with a writer that has replies edited. It returns what
// came back, and whether a message was written.
func EditReplies(e Editor, next Handler, ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (rcode int, wrote bool, err error) { //nolint:revive // as NextOrFailure
	ew := &editWriter{Wrapped: Wrapped{w}, editor: e, query: r}
	rcode, err = NextOrFailure(e.Name(), next, ctx, ew, r)
	return rcode, ew.wrote.Load(), err
}

// editWriter is the writer that the plugins below an Editor get.
type editWriter struct {
	Wrapped
	editor Editor
	query  *dns.Msg
	wrote  atomic.Bool // a plugin may write late, from another goroutine
}

// WriteMsg writes m as EditMsg returns it.
func (w *editWriter) WriteMsg(m *dns.Msg) error {
	return w.noted(w.ResponseWriter.WriteMsg(w.editor.EditMsg(m, w.query)))
}

// noted notes a message as written if err is nil, and returns err. What could not be written, as it cannot be packed,
// is no reply: the server still owes one.
func (w *editWriter) noted(err error) error {
	if err == nil {
		w.wrote.Store(true)
	}
	return err
}

// Write writes b as it is.
func (w *editWriter) Write(b []byte) (int, error) {
	if e, ok := w.editor.(RawWatcher); ok {
		e.RawWritten()
	}
	return w.ResponseWriter.Write(b)
}

var editQueries = sync.Pool{New: func() any { return new(wire.Query) }}

// TakeReply implements ReplyTaker. It always takes, for an edited reply may not be edited once more as a message.
func (w *editWriter) TakeReply(reply *wire.Reply, r *dns.Msg) (taken bool, err error) {
	q := editQueries.Get().(*wire.Query)
	defer editQueries.Put(q)
	if err := q.SetMsg(r, wire.PeerOf(w.RemoteAddr(), w.LocalAddr())); err != nil {
		return false, nil // nothing was edited yet
	}
	w.editor.Edit(reply, q)
	if taken, err := TakeReply(w.ResponseWriter, reply, r); taken {
		return true, w.noted(err)
	}
	m, err := reply.MsgOPT(r)
	if err != nil {
		return true, err
	}
	return true, w.noted(w.ResponseWriter.WriteMsg(m))
}
