package dnstap

import (
	"context"
	"crypto/tls"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/dnstap/msg"
	"github.com/coredns/coredns/request"

	tap "github.com/dnstap/golang-dnstap"
	"github.com/miekg/dns"
)

// ResponseWriter tells each reply that it has written.
type ResponseWriter struct {
	dns.ResponseWriter
	*Dnstap

	query    *dns.Msg
	ctx      context.Context
	began    time.Time
	protocol tap.SocketProtocol
	known    bool        // what protocol says
	written  atomic.Bool // a plugin may write late, from another goroutine
}

// WriteMsg writes resp, and tells it if that went well.
func (w *ResponseWriter) WriteMsg(resp *dns.Msg) error {
	w.written.Store(true)
	if err := w.ResponseWriter.WriteMsg(resp); err != nil {
		return err
	}
	w.tell(resp)
	return nil
}

// Write writes the reply that b holds, such as that to an update that was passed on, and tells it if that went well.
func (w *ResponseWriter) Write(b []byte) (int, error) {
	w.written.Store(true)
	n, err := w.ResponseWriter.Write(b)
	if err == nil {
		w.frame(w.response(), b)
	}
	return n, err
}

// tell sends the frame about resp.
func (w *ResponseWriter) tell(resp *dns.Msg) {
	m := w.response()
	var packet []byte
	if w.IncludeRawMessage {
		packet, _ = w.sent(resp).Pack()
	}
	w.frame(m, packet)
}

// response is the message about a reply that has just been written.
func (w *ResponseWriter) response() *tap.Message {
	m := w.message(tap.Message_CLIENT_RESPONSE)
	msg.SetResponseTime(m, time.Now())
	return m
}

// frame sends the frame of m, with the reply's packet if frames have them.
func (w *ResponseWriter) frame(m *tap.Message, packet []byte) {
	if w.IncludeRawMessage {
		m.ResponseMessage = packet
	}
	w.TapMessageWithMetadata(w.ctx, m, request.Request{W: w.ResponseWriter, Req: w.query})
}

// sent is resp as the client gets it.
func (w *ResponseWriter) sent(resp *dns.Msg) *dns.Msg {
	if s := plugin.ServerFrom(w.ctx); s != nil {
		return s.AsSent(resp, w.query, w.ResponseWriter)
	}
	return resp
}

// message is a message of a kind, with what is known of the query.
func (w *ResponseWriter) message(typ tap.Message_Type) *tap.Message {
	m := new(tap.Message)
	msg.SetType(m, typ)
	msg.SetQueryTime(m, w.began)
	// Clients on other transports may have no such address: it stays open then.
	_ = msg.SetResponseAddress(m, w.LocalAddr())
	_ = msg.SetQueryAddress(m, w.RemoteAddr())
	if w.known {
		m.SocketProtocol = &w.protocol
	}
	return m
}

// ConnectionState implements dns.ConnectionStater.
func (w *ResponseWriter) ConnectionState() *tls.ConnectionState {
	return plugin.ConnectionState(w.ResponseWriter)
}

// AskedName implements plugin.Asker.
func (w *ResponseWriter) AskedName() string { return plugin.AskedName(w.ResponseWriter) }
