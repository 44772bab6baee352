// Package doq speaks DNS over QUIC (RFC 9250): a stream for each query.
//
//	quicconn.Conn ──stream──▶ query ──▶ exec.Serve ──▶ Writer ──▶ stream
//
// A stream has a goroutine; a connection reads maxReaders streams at one time, and a listener works on as many queries
// as Settings.Workers has room for. Connections are admitted and drained by quicconn. Start at Serve; then serveStream.
package doq

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/quicconn"
	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/quic-go/quic-go"
)

// Codes with which connections are closed (RFC 9250 §4.3).
const (
	CodeNoError       quic.ApplicationErrorCode = 0
	CodeInternalError quic.ApplicationErrorCode = 1
	CodeProtocolError quic.ApplicationErrorCode = 2
	CodeExcessiveLoad quic.ApplicationErrorCode = 4

	// Codes of streams.
	streamNone      quic.StreamErrorCode = 0
	streamInternal  quic.StreamErrorCode = 1
	streamCancelled quic.StreamErrorCode = 3
)

// Settings is what a Service of DNS over QUIC has beside, as its Proto.
type Settings struct {
	quicconn.Configs
	Workers chan struct{} // one for each query that is served
}

// maxReaders is how many streams of one connection may be read at one time. A query mostly comes in one
// packet, with the stream.
const maxReaders = 32

// Serve serves the streams of one connection, one query each.
func Serve(c *quicconn.Conn) {
	var wg sync.WaitGroup
	defer wg.Wait()
	readers := make(chan struct{}, maxReaders)
	for {
		stream, err := c.AcceptStream(context.Background())
		if err != nil {
			closed(c, err)
			return
		}
		// Further streams are not accepted, and so not read, until one of these is at work.
		readers <- struct{}{}
		c.Open() // a query that has come in part is waited for when the server stops
		wg.Go(func() {
			serveStream(c, stream, func() { <-readers })
			c.Shut()
			awaitEnd(c.Service(), stream)
		})
	}
}

// closed counts the end of a connection: one that the client ended, or that was idle, ended well.
func closed(c *quicconn.Conn, err error) {
	var app *quic.ApplicationError
	var idle *quic.IdleTimeoutError
	var reset *quic.StatelessResetError
	var handshake *quic.HandshakeTimeoutError
	var transport *quic.TransportError
	switch {
	case errors.As(err, &idle):
		c.Service().Limited("idle_time")
	case errors.As(err, &handshake):
		c.Service().Limited("handshake_time")
	// What the client ended is over, and what we did was counted then.
	case errors.As(err, &app), errors.As(err, &reset), errors.As(err, &transport), errors.Is(err, quic.ErrServerClosed), errors.Is(err, quic.ErrTransportClosed):
	default:
		closeConn(c, CodeInternalError)
	}
}

// closeConn ends a connection with a code, and counts that, once.
func closeConn(c *quicconn.Conn, code quic.ApplicationErrorCode) {
	if !c.Fails() {
		return
	}
	log.Debugf("closing quic conn %s with code %d", c.LocalAddr(), code)
	count(c.Service(), code)
	c.CloseWithError(code, "")
}

// count counts a query that was answered, or a connection that was ended, by its code.
func count(s *service.Service, code quic.ApplicationErrorCode) {
	vars.QUICResponsesCount.WithLabelValues(s.Label, fmt.Sprintf("0x%x", uint64(code))).Inc()
}

// serveStream answers the query of one stream (RFC 9250 §4.2). read is called when it has been read and is at work.
func serveStream(c *quicconn.Conn, stream *quic.Stream, read func()) {
	s := c.Service()
	stream.SetReadDeadline(time.Now().Add(s.Read))
	in := quicconn.NewIncoming(stream)
	packet, err := readQuery(s, in)
	in.Done()
	if err != nil {
		read()
		var gone *quic.StreamError
		switch {
		case errors.Is(err, quicconn.ErrMany):
			s.Limited("waiting")
			stream.CancelWrite(streamInternal)
		// The connection is gone; Serve counts why.
		case c.Context().Err() != nil:
		case errors.As(err, &gone): // the client wants no answer any more
			stream.CancelWrite(streamCancelled)
		default:
			protocolError(c, err)
		}
		return
	}
	if c.Begin() { // it is not forgotten while it waits, should the server stop
		defer c.Vacate()
	}
	workers := s.Proto.(*Settings).Workers
	workers <- struct{}{}
	read()
	// Another server may sit there by now: this one answers the query, whatever limits it was read with.
	s = c.Enter()
	defer s.Inflight.Done()
	state := c.ConnectionState().TLS
	w := &Writer{service: s, localAddr: c.LocalAddr(), remoteAddr: c.Client(), conn: c, stream: stream, timeout: s.Write, tls: &state}
	w.transfer = isTransfer(packet)
	w.workers = workers
	w.worker.Store(true)
	defer w.leave()
	switch err := exec.Serve(stream.Context(), s, w, packet); {
	case errors.Is(err, exec.ErrCrowded):
		stream.CancelWrite(streamInternal)
		return
	case err != nil:
		protocolError(c, err)
		return
	// Nobody has answered: the stream is reset, so that the client need not wait.
	case !w.written.Load():
		stream.CancelWrite(streamCancelled)
	// Messages of a transfer, and octets of a plugin's own, are all written only now; other replies end the stream by
	// themselves.
	case !w.ended.Load():
		w.Close()
	}
	count(s, CodeNoError)
}

// awaitEnd waits for the client's end of a stream, which may come behind the query. Only when the library has handed it
// over, the client may open another stream instead.
func awaitEnd(s *service.Service, stream *quic.Stream) {
	stream.SetReadDeadline(time.Now().Add(s.Read))
	if _, err := stream.Read(make([]byte, 1)); err != io.EOF {
		stream.CancelRead(streamNone) // no more is wanted
	}
}

// protocolError ends a connection whose client does not keep to the rules, or to its time: RFC 9250 §4.3.3 knows
// nothing milder.
func protocolError(c *quicconn.Conn, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.Service().Limited("read_time")
	}
	log.Debugf("reading a query of a quic stream: %s", err)
	closeConn(c, CodeProtocolError)
}

// readQuery reads a query with its length before it, and checks what DoQ asks of it (RFC 9250 §4.2.1, §5.5.2).
func readQuery(s *service.Service, r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, fmt.Errorf("length: %w", err)
	}
	n := int(binary.BigEndian.Uint16(length[:]))
	if n == 0 {
		return nil, errors.New("length is zero")
	}
	b, err := s.ReadQuery(r, n)
	switch {
	case err == service.ErrLong:
		s.Limited("query_bytes")
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("message: %w", err)
	}
	// Streams tell queries apart, so ids are 0: then equal queries are equal octets (RFC 9250 §4.2.1).
	if n >= 2 && binary.BigEndian.Uint16(b) != 0 {
		return nil, errors.New("message id is not zero")
	}
	if hasKeepalive(b) {
		return nil, errors.New("keepalive option")
	}
	return b, nil
}

// hasKeepalive reports whether a query has the option that must not be sent over QUIC.
func hasKeepalive(packet []byte) bool {
	opt, ok := reply.LastOPT(packet)
	if !ok {
		return false // whatever has its OPT record elsewhere is looked at when it is unpacked
	}
	for b := packet[opt+11:]; len(b) >= 4; {
		n := 4 + int(binary.BigEndian.Uint16(b[2:]))
		if binary.BigEndian.Uint16(b) == dns.EDNS0TCPKEEPALIVE {
			return true
		}
		if n > len(b) {
			return false
		}
		b = b[n:]
	}
	return false
}

// isTransfer reports whether a query asks for a zone transfer, whose reply may be several messages: for all others the
// stream ends with the first one, in the same packet.
func isTransfer(packet []byte) bool {
	if len(packet) < 12 || binary.BigEndian.Uint16(packet[4:]) != 1 {
		return false
	}
	end := reply.SkipName(packet, 12)
	if end+4 > len(packet) {
		return false
	}
	t := binary.BigEndian.Uint16(packet[end:])
	return t == dns.TypeAXFR || t == dns.TypeIXFR
}

// Frame is b with its length before it, as DoQ and TCP frame messages: in one piece, so that it leaves in one packet if
// there is room.
func Frame(b []byte) (m []byte) {
	m = binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(b)), uint16(len(b)))
	return append(m, b...)
}
