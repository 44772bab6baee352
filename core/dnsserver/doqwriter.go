package dnsserver

import (
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

// DoQWriter is the dns.ResponseWriter of a query that came over QUIC. It writes one message and
// ends the stream.
type DoQWriter struct {
	// Msg is the message that was written last, nil if none was.
	Msg *dns.Msg

	localAddr, remoteAddr net.Addr
	stream                *quic.Stream
	tls                   *tls.ConnectionState
	timeout               time.Duration
}

var errNoStream = errors.New("stream is nil")

// WriteMsg writes m with its length before it, and ends the stream.
func (w *DoQWriter) WriteMsg(m *dns.Msg) error {
	b, err := m.Pack()
	if err != nil {
		return err
	}
	w.Msg = m
	if _, err := w.Write(AddPrefix(b)); err != nil {
		return err
	}
	return w.Close()
}

// writeFit writes m, a reply to req, which may be as long as a message can be.
func (w *DoQWriter) writeFit(m, req *dns.Msg) error {
	r := &responder{out: doqOutlet{w, m}, network: w.Network(), remote: w.remoteAddr, local: w.localAddr, limit: dns.MaxMsgSize, tls: w.tls}
	return r.writeFit(m, req)
}

// doqOutlet sends the packed form of a message on the writer's stream.
type doqOutlet struct {
	*DoQWriter
	m *dns.Msg
}

func (o doqOutlet) send(b []byte) error {
	o.Msg = o.m
	if _, err := o.Write(AddPrefix(b)); err != nil {
		return err
	}
	return o.DoQWriter.Close()
}

// Write writes b to the stream as it is.
func (w *DoQWriter) Write(b []byte) (int, error) {
	if w.stream == nil {
		return 0, errNoStream
	}
	if w.timeout > 0 {
		w.stream.SetWriteDeadline(time.Now().Add(w.timeout))
	}
	return w.stream.Write(b)
}

// Close ends the stream in our direction.
func (w *DoQWriter) Close() error {
	if w.stream == nil {
		return errNoStream
	}
	return w.stream.Close()
}

// RemoteAddr is the client's address, LocalAddr ours.
func (w *DoQWriter) RemoteAddr() net.Addr { return w.remoteAddr }
func (w *DoQWriter) LocalAddr() net.Addr  { return w.localAddr }

// Network is "" as QUIC is neither of the transports that miekg/dns knows.
func (w *DoQWriter) Network() string { return "" }

// ConnectionState is the TLS state of the connection.
func (w *DoQWriter) ConnectionState() *tls.ConnectionState { return w.tls }

// Hijack and TsigTimersOnly do nothing; TsigStatus is nil.
func (w *DoQWriter) Hijack()               {}
func (w *DoQWriter) TsigStatus() error     { return nil }
func (w *DoQWriter) TsigTimersOnly(b bool) {}
