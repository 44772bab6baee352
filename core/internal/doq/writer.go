package doq

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/quicconn"
	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

// Writer is the dns.ResponseWriter of a query that came over QUIC. It writes one message and
// ends the stream; of the messages of a zone transfer it writes as many as there are.
type Writer struct {
	// Msg is the message that was written last, nil if none was.
	Msg *dns.Msg

	service               *service.Service
	mu                    sync.Mutex // held by who writes a message; several goroutines of a plugin may want to
	localAddr, remoteAddr net.Addr
	conn                  *quicconn.Conn
	stream                *quic.Stream
	tls                   *tls.ConnectionState
	timeout               time.Duration
	transfer              bool        // the stream ends with the query
	written, ended        atomic.Bool // a plugin may write when the query is over
	workers               chan struct{}
	worker                atomic.Bool // has a place in workers
	reply.Signature
}

var errNoStream = errors.New("stream is nil")

// WriteMsg writes m with its length before it, and ends the stream.
func (w *Writer) WriteMsg(m *dns.Msg) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, err := w.Pack(m)
	if err != nil {
		return err
	}
	w.Msg = m
	return w.send(b, true)
}

// WriteFit writes m, a reply to req, which may be as long as a message can be.
func (w *Writer) WriteFit(m, req *dns.Msg) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	fit := &reply.Writer{Sink: sink{w, m}, Finish: w.finisher(), Signature: w.Signature}
	fit.Client = reply.Client{Remote: w.remoteAddr, Local: w.localAddr, Limit: dns.MaxMsgSize, TLS: w.tls}
	err := fit.WriteFit(m, req)
	// The next message of a transfer is signed together with this one (RFC 8945 §5.3.1).
	w.Signature = fit.Signature
	return err
}

// finisher is that of the server, nil where there is none.
func (w *Writer) finisher() *reply.Finisher {
	if w.service == nil {
		return nil
	}
	return w.service.Finish
}

// sink sends the packed form of a message on the writer's stream.
type sink struct {
	*Writer
	m *dns.Msg
}

// Send implements reply.Sink.
func (s sink) Send(b []byte) error {
	s.Msg = s.m
	return s.send(b, true)
}

// Send writes one packed message with its length before it. Who calls it has no place among those at work any more.
func (w *Writer) Send(b []byte) error { return w.send(b, false) }

// send is Send. placed says that the caller has such a place.
func (w *Writer) send(b []byte, placed bool) error {
	w.written.Store(true)
	if w.conn != nil {
		// The octets count as unsent until the stream has taken them, which its window may delay.
		if !w.conn.Hold(len(b)) {
			w.service.Limited("in_flight_bytes")
			w.stream.CancelWrite(streamInternal)
			return unsent.Err
		}
		defer w.conn.Release(len(b))
	}
	if _, err := w.write(Frame(b), placed); err != nil {
		return err
	}
	// There may be more messages; serveStream ends the stream.
	if w.transfer {
		return nil
	}
	return w.Close()
}

// Write writes b to the stream, with its length before it if it is a message without: writers of other transports
// want none, and most plugins know no other. The stream ends with the query.
func (w *Writer) Write(b []byte) (int, error) {
	if len(b) < wire.HeaderLen || len(b) > wire.MaxMessage || hasLengths(b) {
		return w.write(b, true)
	}
	n, err := w.write(Frame(b), true)
	return max(0, n-2), err
}

// hasLengths reports whether b is messages with their lengths before them, and nothing else. No message looks like
// that: it begins with its id, which is 0 over QUIC.
func hasLengths(b []byte) bool {
	for len(b) >= 2 {
		n := 2 + int(binary.BigEndian.Uint16(b))
		if n < 2+wire.HeaderLen || n > len(b) {
			return false
		}
		b = b[n:]
	}
	return len(b) == 0
}

// short is octets that the library takes without waiting for the client.
const short = 1200

// write writes b to the stream as it is. While the client is waited for, others may work in this query's place.
func (w *Writer) write(b []byte, placed bool) (int, error) {
	if w.stream == nil {
		return 0, errNoStream
	}
	w.written.Store(true)
	if w.timeout > 0 {
		w.stream.SetWriteDeadline(time.Now().Add(w.timeout))
	}
	waits := len(b) > short || w.transfer
	if waits {
		w.leave()
	}
	if waits && placed && w.service != nil {
		var h eventloop.Holder
		unsent.Hold(&h, func() {
			w.service.Limited("waiting")
			w.stream.CancelWrite(streamInternal)
		})
		defer h.Done()
	}
	// The last octets by themselves: the library keeps them for a moment, so that the end of the stream comes with
	// them. Some clients ask no more on a connection where it comes behind them.
	head := len(b)
	if head > short && !w.transfer {
		head -= short / 2
	}
	n, err := w.stream.Write(b[:head])
	if err == nil && head < len(b) {
		n, err = w.stream.Write(b[head:])
		n += head
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && w.service != nil {
		w.service.Limited("write_time")
		w.stream.CancelWrite(streamCancelled)
	}
	return n, err
}

// leave gives the place among the listener's workers back, once.
func (w *Writer) leave() {
	if w.worker.Swap(false) {
		<-w.workers
	}
}

// Close ends the stream in our direction.
func (w *Writer) Close() error {
	if w.stream == nil {
		return errNoStream
	}
	w.ended.Store(true)
	return w.stream.Close()
}

// Peer implements exec.QueryWriter.
func (w *Writer) Peer() wire.Peer {
	p := wire.PeerOf(w.remoteAddr, w.localAddr)
	p.Limit = wire.MaxMessage
	return p
}

// Verify checks the signature of the query r, which came as packet (RFC 8945 §5.2).
func (w *Writer) Verify(packet []byte, r *dns.Msg) { w.finisher().Verify(&w.Signature, packet, r) }

// RemoteAddr is the client's address, LocalAddr ours.
func (w *Writer) RemoteAddr() net.Addr { return w.remoteAddr }
func (w *Writer) LocalAddr() net.Addr  { return w.localAddr }

// Network is "" as QUIC is neither of the transports that miekg/dns knows.
func (w *Writer) Network() string { return "" }

// ConnectionState is the TLS state of the connection.
func (w *Writer) ConnectionState() *tls.ConnectionState { return w.tls }

// TsigStatus is nil if the query is not signed, or well.
func (w *Writer) TsigStatus() error { return w.Signature.TsigStatus() }

// TsigTimersOnly is for the second and further messages of a zone transfer.
func (w *Writer) TsigTimersOnly(b bool) { w.Signature.TsigTimersOnly(b) }

// Hijack does nothing: the connection is not the query's.
func (w *Writer) Hijack() {}
