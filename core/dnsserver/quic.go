package dnsserver

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

// Codes with which DoQ connections are closed (RFC 9250 §4.3).
const (
	DoQCodeNoError       quic.ApplicationErrorCode = 0
	DoQCodeInternalError quic.ApplicationErrorCode = 1
	DoQCodeProtocolError quic.ApplicationErrorCode = 2

	doqExcessiveLoad quic.ApplicationErrorCode = 4

	// Codes of streams.
	doqStreamInternal  quic.StreamErrorCode = 1
	doqStreamCancelled quic.StreamErrorCode = 3
)

// ServerQUIC serves DNS over QUIC (RFC 9250).
type ServerQUIC struct {
	*Server
	tlsConfig  *tls.Config
	quicConfig *quic.Config
	transport  *quicTransport
	workers    chan struct{} // one for each query that is served
}

// NewServerQUIC is a ServerQUIC for the blocks of group, at addr (quic://:853). It opens no socket.
func NewServerQUIC(addr string, group []*Config) (*ServerQUIC, error) {
	s, err := NewServer(addr, group)
	if err != nil {
		return nil, err
	}
	workers := orDefault(firstSet(group, func(c *Config) *int { return c.MaxQUICWorkerPoolSize }), DefaultQUICStreamWorkers)
	sq := &ServerQUIC{
		Server: s, tlsConfig: tlsConfigOf(group, "doq"), quicConfig: quicConfigOf(s, false),
		workers: make(chan struct{}, max(1, workers)),
	}
	sq.quicConfig.MaxIncomingUniStreams = -1
	return sq, nil
}

// Listen opens nothing: there is no TCP here.
func (s *ServerQUIC) Listen() (net.Listener, error) { return nil, nil }

// Serve does nothing: there is no TCP here.
func (s *ServerQUIC) Serve(net.Listener) error { return nil }

// ListenPacket opens the UDP socket.
func (s *ServerQUIC) ListenPacket() (net.PacketConn, error) {
	if s.tlsConfig == nil {
		return nil, errNoQUICTLS
	}
	return reuseport.ListenPacket("udp", strings.TrimPrefix(s.Addr, transport.QUIC+"://"))
}

var errNoQUICTLS = errors.New("quic: tls.Config not set")

// ServePacket serves queries that come on p until the server is stopped.
func (s *ServerQUIC) ServePacket(p net.PacketConn) error {
	if s.tlsConfig == nil {
		return errNoQUICTLS
	}
	t, err := listenQUIC(s.Server, p, s.tlsConfig, s.quicConfig, quicCodes{DoQCodeNoError, doqExcessiveLoad})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.transport = t
	s.mu.Unlock()
	if !s.start(doqStopper{t}) {
		return t.end(context.Background())
	}
	return s.ServeQUIC()
}

// Stop stops the server. See Server.Stop.
func (s *ServerQUIC) Stop() error { return s.Server.Stop() }

type doqStopper struct{ *quicTransport }

func (d doqStopper) stop(ctx context.Context) error { return d.end(ctx) }

// ServeQUIC serves the connections that the listener of ServePacket gets, until it is closed.
func (s *ServerQUIC) ServeQUIC() error {
	s.mu.Lock()
	t := s.transport
	s.mu.Unlock()
	if t == nil {
		return errors.New("quic: no listener to serve on")
	}
	return t.serve(s.serveConn)
}

// doqReaders is how many streams of one connection may be read at one time. A query mostly comes in one
// packet, with the stream.
const doqReaders = 32

// serveConn serves the streams of one connection, one query each.
func (s *ServerQUIC) serveConn(conn *quicConn) {
	var wg sync.WaitGroup
	defer wg.Wait()
	readers := make(chan struct{}, doqReaders)
	for {
		stream, err := conn.AcceptStream(context.Background())
		if err != nil {
			s.closed(conn, err)
			return
		}
		readers <- struct{}{}
		wg.Go(func() {
			s.serveStreamQUIC(conn, stream, func() { <-readers })
		})
	}
}

// closed counts the end of a connection: one that the client ended, or that was idle, ended well.
func (s *ServerQUIC) closed(conn *quicConn, err error) {
	var app *quic.ApplicationError
	var idle *quic.IdleTimeoutError
	var reset *quic.StatelessResetError
	var handshake *quic.HandshakeTimeoutError
	var transport *quic.TransportError
	switch {
	case errors.As(err, &idle):
		s.limited("idle_time")
	case errors.As(err, &handshake):
		s.limited("handshake_time")
	case errors.As(err, &app), errors.As(err, &reset), errors.As(err, &transport), errors.Is(err, quic.ErrServerClosed), errors.Is(err, quic.ErrTransportClosed):
		// What the client ended is over, and what we did was counted then.
	default:
		s.closeConn(conn, DoQCodeInternalError)
	}
}

func (s *ServerQUIC) closeConn(conn *quicConn, code quic.ApplicationErrorCode) {
	log.Debugf("closing quic conn %s with code %d", conn.LocalAddr(), code)
	s.count(code)
	conn.CloseWithError(code, "")
}

func (s *ServerQUIC) count(code quic.ApplicationErrorCode) {
	vars.QUICResponsesCount.WithLabelValues(s.Addr, fmt.Sprintf("0x%x", uint64(code))).Inc()
}

// serveStreamQUIC answers the query of one stream (RFC 9250 §4.2). read is called when it has been read and is at work.
func (s *ServerQUIC) serveStreamQUIC(conn *quicConn, stream *quic.Stream, read func()) {
	stream.SetReadDeadline(time.Now().Add(s.ReadTimeout))
	packet, err := s.readDoQ(stream)
	if err != nil {
		read()
		var gone *quic.StreamError
		switch {
		case conn.Context().Err() != nil:
		case errors.As(err, &gone): // the client wants no answer any more
			stream.CancelWrite(doqStreamCancelled)
		default:
			s.protocolError(conn, err)
		}
		return
	}
	s.workers <- struct{}{}
	read()
	conn.begin()
	defer func() {
		conn.end()
		<-s.workers
	}()
	state := conn.ConnectionState().TLS
	w := &DoQWriter{server: s.Server, localAddr: conn.LocalAddr(), remoteAddr: clientOf(conn.RemoteAddr()), stream: stream, timeout: s.WriteTimeout, tls: &state}
	w.transfer = isTransfer(packet)
	switch err := s.serveBytes(stream.Context(), w, packet); {
	case errors.Is(err, errCrowded):
		stream.CancelWrite(doqStreamInternal)
		return
	case err != nil:
		s.protocolError(conn, err)
		return
	case !w.written:
		stream.CancelWrite(doqStreamCancelled)
	case w.transfer:
		w.Close()
	}
	s.count(DoQCodeNoError)
}

func (s *ServerQUIC) protocolError(conn *quicConn, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.limited("read_time")
	}
	log.Debugf("reading a query of a quic stream: %s", err)
	s.closeConn(conn, DoQCodeProtocolError)
}

// readDoQ reads a query with its length before it, and checks what DoQ asks of it (RFC 9250 §4.2.1, §5.5.2).
func (s *ServerQUIC) readDoQ(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, fmt.Errorf("length: %w", err)
	}
	n := int(binary.BigEndian.Uint16(length[:]))
	switch {
	case n == 0:
		return nil, errors.New("length is zero")
	case s.tooLong(n):
		s.limited("query_bytes")
		return nil, errLongQuery
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("message: %w", err)
	}
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
	opt, ok := lastOPT(packet)
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

// isTransfer reports whether a query asks for a zone transfer, whose reply may be several messages.
func isTransfer(packet []byte) bool {
	if len(packet) < 12 || binary.BigEndian.Uint16(packet[4:]) != 1 {
		return false
	}
	end := skipName(packet, 12)
	if end+4 > len(packet) {
		return false
	}
	t := binary.BigEndian.Uint16(packet[end:])
	return t == dns.TypeAXFR || t == dns.TypeIXFR
}

// AddPrefix is b with its length before it, as DoQ and TCP frame messages.
func AddPrefix(b []byte) (m []byte) {
	m = binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(b)), uint16(len(b)))
	return append(m, b...)
}
