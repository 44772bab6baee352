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
	"net"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/dnstap/msg"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/replacer"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	tap "github.com/dnstap/golang-dnstap"
	"github.com/miekg/dns"
	"google.golang.org/protobuf/proto"
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

// sink takes packed frames, from any number of goroutines. It never waits, and keeps frame.
type sink interface {
	take(frame []byte)
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
	if h.sink == nil {
		return
	}
	kind := tap.Dnstap_MESSAGE
	frame := tap.Dnstap{Type: &kind, Message: m, Identity: h.Identity, Version: h.Version}
	if extra != "" {
		frame.Extra = []byte(extra)
	}
	b, err := proto.Marshal(&frame)
	if err != nil {
		logger.Warningf("Packing a frame: %v", err)
		return
	}
	h.sink.take(b)
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
	if !rw.written && !plugin.ClientWrite(rcode) { // the server writes it
		rw.tell(new(dns.Msg).SetRcode(r, rcode))
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
	asked := h.wireMessage(ctx, q, tap.Message_CLIENT_QUERY, began)
	if h.IncludeRawMessage {
		asked.QueryMessage = q.Packet()
		if q.Changed() {
			asked.QueryMessage = q.Append(nil, q.ID())
		}
	}
	h.send(asked, "")
	if w.Dropped() {
		return out
	}
	told := h.wireMessage(ctx, q, tap.Message_CLIENT_RESPONSE, began)
	msg.SetResponseTime(told, time.Now())
	if h.IncludeRawMessage {
		told.ResponseMessage = packed(w, q)
	}
	h.send(told, "")
	return out
}

// packed is the reply as it will be sent.
func packed(w *wire.Reply, q *wire.Query) []byte {
	if !w.Holds() {
		failed := new(wire.Reply)
		failed.Begin(q)
		failed.SetRcode(w.Rcode())
		w = failed
	}
	return w.AppendFinished(nil, q, edns.ReplySize(q.EDNS().Size))
}

// WireSelf returns h.
func (h *Dnstap) WireSelf() plugin.Handler { return h }

func (h *Dnstap) wireMessage(ctx context.Context, q *wire.Query, typ tap.Message_Type, began time.Time) *tap.Message {
	m := new(tap.Message)
	msg.SetType(m, typ)
	msg.SetQueryTime(m, began)
	address := func(a net.Addr, set func(*tap.Message, net.Addr) error) { _ = set(m, a) } // without an address it stays open
	if q.Proto == wire.TCP {
		address(net.TCPAddrFromAddrPort(q.Client), msg.SetQueryAddress)
		address(net.TCPAddrFromAddrPort(q.Local), msg.SetResponseAddress)
	} else {
		address(net.UDPAddrFromAddrPort(q.Client), msg.SetQueryAddress)
		address(net.UDPAddrFromAddrPort(q.Local), msg.SetResponseAddress)
	}
	if p, ok := protocolOf(ctx); ok {
		m.SocketProtocol = &p
	}
	return m
}

// protocolOf is the protocol of ctx's server, if it is one that the addresses do not tell.
func protocolOf(ctx context.Context) (tap.SocketProtocol, bool) {
	scheme, _, _ := strings.Cut(plugin.Label(ctx), "://")
	switch scheme {
	case transport.TLS:
		return tap.SocketProtocol_DOT, true
	case transport.HTTPS, transport.HTTPS3:
		return tap.SocketProtocol_DOH, true
	case transport.QUIC:
		return protocolDOQ, true
	}
	return 0, false
}

// protocolDOQ is DNS over QUIC (RFC 9250), which the library's version of the definition does not name yet.
const protocolDOQ = tap.SocketProtocol(7)
