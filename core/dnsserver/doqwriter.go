package dnsserver

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

// DoQWriter is the dns.ResponseWriter of a query that came over QUIC. It writes one message and
// ends the stream; of the messages of a zone transfer it writes as many as there are.
type DoQWriter struct {
	// Msg is the message that was written last, nil if none was.
	Msg *dns.Msg

	server                *Server
	localAddr, remoteAddr net.Addr
	stream                *quic.Stream
	tls                   *tls.ConnectionState
	timeout               time.Duration
	transfer              bool // the stream ends with the query
	written               bool
	signature
}

var errNoStream = errors.New("stream is nil")

// WriteMsg writes m with its length before it, and ends the stream.
func (w *DoQWriter) WriteMsg(m *dns.Msg) error {
	b, err := w.pack(m)
	if err != nil {
		return err
	}
	w.Msg = m
	return w.send(b)
}

// writeFit writes m, a reply to req, which may be as long as a message can be.
func (w *DoQWriter) writeFit(m, req *dns.Msg) error {
	r := &responder{out: doqOutlet{w, m}, server: w.server, network: w.Network(), remote: w.remoteAddr, local: w.localAddr, limit: dns.MaxMsgSize, tls: w.tls, signature: w.signature}
	err := r.writeFit(m, req)
	w.signature = r.signature
	return err
}

// doqOutlet sends the packed form of a message on the writer's stream.
type doqOutlet struct {
	*DoQWriter
	m *dns.Msg
}

func (o doqOutlet) send(b []byte) error {
	o.Msg = o.m
	return o.DoQWriter.send(b)
}

// send writes one packed message with its length before it.
func (w *DoQWriter) send(b []byte) error {
	w.written = true
	if w.server != nil {
		if !inFlight.take(len(b)) {
			w.server.limited("in_flight_bytes")
			w.stream.CancelWrite(doqStreamInternal)
			return errInFlight
		}
		defer inFlight.give(len(b))
	}
	if _, err := w.Write(AddPrefix(b)); err != nil {
		return err
	}
	if w.transfer {
		return nil
	}
	return w.Close()
}

// Write writes b to the stream as it is.
func (w *DoQWriter) Write(b []byte) (int, error) {
	if w.stream == nil {
		return 0, errNoStream
	}
	w.written = true
	if w.timeout > 0 {
		w.stream.SetWriteDeadline(time.Now().Add(w.timeout))
	}
	n, err := w.stream.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) && w.server != nil {
		w.server.limited("write_time")
		w.stream.CancelWrite(doqStreamCancelled)
	}
	return n, err
}

// Close ends the stream in our direction.
func (w *DoQWriter) Close() error {
	if w.stream == nil {
		return errNoStream
	}
	return w.stream.Close()
}

func (w *DoQWriter) peer() wire.Peer {
	p := wire.PeerOf(w.remoteAddr, w.localAddr)
	p.Limit = wire.MaxMessage
	return p
}

func (w *DoQWriter) verify(packet []byte, r *dns.Msg) { w.check(w.server, packet, r) }

// RemoteAddr is the client's address, LocalAddr ours.
func (w *DoQWriter) RemoteAddr() net.Addr { return w.remoteAddr }
func (w *DoQWriter) LocalAddr() net.Addr  { return w.localAddr }

// Network is "" as QUIC is neither of the transports that miekg/dns knows.
func (w *DoQWriter) Network() string { return "" }

// ConnectionState is the TLS state of the connection.
func (w *DoQWriter) ConnectionState() *tls.ConnectionState { return w.tls }

// TsigStatus is nil if the query is not signed, or well.
func (w *DoQWriter) TsigStatus() error { return w.signature.TsigStatus() }

// TsigTimersOnly is for the second and further messages of a zone transfer.
func (w *DoQWriter) TsigTimersOnly(b bool) { w.signature.TsigTimersOnly(b) }

// Hijack does nothing: the connection is not the query's.
func (w *DoQWriter) Hijack() {}
