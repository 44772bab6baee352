// Package dnstap tells others about queries and replies, in the form of dnstap.info.
//
//	query ──CLIENT_QUERY──▶ chain ──CLIENT_RESPONSE──▶ client
//	             │            │ forward: FORWARDER_QUERY, FORWARDER_RESPONSE
//	             ▼            ▼
//	          frames, packed ──▶ sink: dial.go, or hub.go with all who are connected ──▶ Frame Streams
//
// A query is never held up: what a peer does not take in time is dropped and counted. In the wire lane the frames of a query
// that was answered at once follow each other; all others take the message lane, where the first goes out before any work is done.
//
// Start at Dnstap.ServeDNS.
package dnstap

import (
	"context"
	"encoding/binary"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/dnstap/msg"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/replacer"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	tap "github.com/dnstap/golang-dnstap"
	"github.com/miekg/dns"
)

const pluginName = "dnstap"

var logger = log.NewWithPlugin(pluginName)

// WarnLogger is what warnings go to.
type WarnLogger interface {
	Warningf(format string, v ...any)
}

// Dnstap is the plugin. Its fields are to be set before it serves.
type Dnstap struct {
	Next plugin.Handler

	// IncludeRawMessage puts the messages themselves into frames.
	IncludeRawMessage bool
	// Identity and Version tell who sends the frames.
	Identity []byte
	Version  []byte
	// ExtraFormat is text for the frames, with the fields of package replacer.
	ExtraFormat string
	// MultipleTcpWriteBuf is the size of a TCP connection's send buffer, in MiB.
	MultipleTcpWriteBuf int //nolint:revive,staticcheck // the name is API
	// MultipleQueue is how many frames may wait, in ten thousands.
	MultipleQueue int

	sink sink // nil without one
}

// sink takes n packed frames, each with its length before it, from any number of goroutines. It neither waits nor keeps
// frames.
type sink interface {
	take(frames []byte, n int)
}

// Name is the plugin's name.
func (h *Dnstap) Name() string { return pluginName }

// ReadsMetadata reports whether the extra text has labels.
func (h *Dnstap) ReadsMetadata() bool { return replacer.Parse(h.ExtraFormat).HasLabels() }

// TapMessage sends a frame about m.
func (h *Dnstap) TapMessage(m *tap.Message) { h.send(m, h.ExtraFormat) }

// TapMessageWithMetadata sends a frame about m with the extra text for the query in state.
func (h *Dnstap) TapMessageWithMetadata(ctx context.Context, m *tap.Message, state request.Request) {
	extra := h.ExtraFormat
	if extra != "" {
		extra = replacer.New().Replace(ctx, state, nil, extra)
	}
	h.send(m, extra)
}

func (h *Dnstap) send(m *tap.Message, extra string) {
	if h.sink != nil {
		e := events.Get().(*event)
		e.frames = h.appendFrame(e.frames[:0], m, extra)
		h.sink.take(e.frames, 1)
		e.free()
	}
}

// ServeDNS tells the query, and the reply if one is written.
func (h *Dnstap) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	rw := &ResponseWriter{ResponseWriter: w, Dnstap: h, query: r, ctx: ctx, began: time.Now()}
	rw.protocol, rw.known = protocolOf(ctx)
	q := rw.message(tap.Message_CLIENT_QUERY)
	if h.IncludeRawMessage {
		q.QueryMessage, _ = r.Pack()
	}
	h.TapMessageWithMetadata(ctx, q, request.Request{W: w, Req: r})
	rcode, err := plugin.NextOrFailure(h.Name(), h.Next, ctx, rw, r)
	if !rw.written.Load() && !plugin.ClientWrite(rcode) { // the server writes it
		m := edns.ErrorReply(r, rcode, err)
		if opt := r.IsEdns0(); opt != nil && m.IsEdns0() == nil {
			m.SetEdns0(opt.UDPSize(), opt.Do()) // without the options of the query that other replies repeat
		}
		rw.tell(m)
	}
	return rcode, err
}

// ServeWire passes the query on, and tells both frames when it has been answered.
func (h *Dnstap) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if h.ExtraFormat != "" {
		return wire.Unpack
	}
	out := plugin.NextWire(h.Name(), h.Next, ctx, w, q)
	if out != wire.Done || h.sink == nil {
		return out
	}
	began := q.Arrival
	if began.IsZero() {
		began = time.Now()
	}
	e := newEvent(tap.Message_CLIENT_QUERY, q, began)
	defer e.free()
	if p, ok := protocolOf(ctx); ok {
		e.protocol, e.SocketProtocol = p, &e.protocol
	}
	if h.IncludeRawMessage {
		if e.QueryMessage = q.Packet(); q.Changed() {
			e.packet = q.Append(e.packet[:0], q.ID())
			binary.BigEndian.PutUint16(e.packet[2:], q.Flags()) // also those that go no further
			e.QueryMessage = e.packet
		}
	}
	e.frames = h.appendFrame(e.frames, &e.Message, "")
	if w.Dropped() {
		h.sink.take(e.frames, 1)
		return out
	}
	e.answered(time.Now())
	if h.IncludeRawMessage {
		e.packet = appendReply(e.packet[:0], ctx, w, q)
		e.ResponseMessage = e.packet
	}
	e.frames = h.appendFrame(e.frames, &e.Message, "")
	h.sink.take(e.frames, 2)
	return out
}

// appendReply appends the reply as it will be sent. Of a failure the server makes it later, with what the error has for the
// client.
func appendReply(b []byte, ctx context.Context, w *wire.Reply, q *wire.Query) []byte { //nolint:revive // what is appended to comes first
	if w.Holds() {
		if s := plugin.ServerFrom(ctx); s != nil {
			return s.AppendSent(b, w, q)
		}
	} else {
		failed := new(wire.Reply)
		failed.Begin(q)
		failed.SetRcode(w.Rcode())
		failed.SetFlag(wire.FlagRA, edns.Resolves(w.Err()))
		for code, text := range edns.Explanations(w.Err()) {
			failed.AddEDE(code, text)
		}
		w = failed
	}
	return w.AppendFinished(b, q, edns.ReplySize(q.EDNS().Size))
}

// WireSelf returns h.
func (h *Dnstap) WireSelf() plugin.Handler { return h }

// protocolOf is the protocol of ctx's server, if it is one that the addresses do not tell.
func protocolOf(ctx context.Context) (tap.SocketProtocol, bool) {
	scheme, _, _ := strings.Cut(plugin.Label(ctx), "://")
	return msg.ProtocolOf(scheme)
}
