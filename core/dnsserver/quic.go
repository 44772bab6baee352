package dnsserver

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
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

	doqRequestCancelled quic.StreamErrorCode      = 3
	doqExcessiveLoad    quic.ApplicationErrorCode = 4
)

// ServerQUIC serves DNS over QUIC (RFC 9250).
type ServerQUIC struct {
	*Server
	tlsConfig  *tls.Config
	quicConfig *quic.Config
	listener   *quic.EarlyListener
	workers    chan struct{} // one for each stream that is served
	maxConns   int
}

// NewServerQUIC is a ServerQUIC for the blocks of group, at addr (quic://:853). It opens no socket.
func NewServerQUIC(addr string, group []*Config) (*ServerQUIC, error) {
	s, err := NewServer(addr, group)
	if err != nil {
		return nil, err
	}
	workers := orDefault(firstSet(group, func(c *Config) *int { return c.MaxQUICWorkerPoolSize }), DefaultQUICStreamWorkers)
	return &ServerQUIC{
		Server:     s,
		tlsConfig:  tlsConfigOf(group, "doq"),
		quicConfig: &quic.Config{MaxIdleTimeout: s.IdleTimeout, MaxIncomingStreams: int64(s.limits.streams), MaxIncomingUniStreams: -1, Allow0RTT: true},
		workers:    make(chan struct{}, max(1, workers)),
		maxConns:   s.limits.connections,
	}, nil
}

// Listen opens nothing: there is no TCP here.
func (s *ServerQUIC) Listen() (net.Listener, error) { return nil, nil }

// Serve does nothing: there is no TCP here.
func (s *ServerQUIC) Serve(net.Listener) error { return nil }

// ListenPacket opens the UDP socket.
func (s *ServerQUIC) ListenPacket() (net.PacketConn, error) {
	if s.tlsConfig == nil {
		return nil, errors.New("quic: tls.Config not set")
	}
	return reuseport.ListenPacket("udp", strings.TrimPrefix(s.Addr, transport.QUIC+"://"))
}

// ServePacket serves queries that come on p until the server is stopped.
func (s *ServerQUIC) ServePacket(p net.PacketConn) error {
	if s.tlsConfig == nil {
		return errors.New("quic: tls.Config not set")
	}
	l, err := quic.ListenEarly(s.wrapPacket(p), s.tlsConfig, s.quicConfig)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.listener = l
	s.mu.Unlock()
	if !s.start(quicStopper{l, p}) {
		l.Close()
		return p.Close()
	}
	return s.ServeQUIC()
}

type quicStopper struct {
	listener *quic.EarlyListener
	conn     net.PacketConn
}

func (q quicStopper) stop(context.Context) error {
	err := q.listener.Close()
	q.conn.Close()
	return err
}

// ServeQUIC serves the connections that the listener of ServePacket gets, until it is closed.
func (s *ServerQUIC) ServeQUIC() error {
	s.mu.Lock()
	l := s.listener
	s.mu.Unlock()
	if l == nil {
		return errors.New("quic: no listener to serve on")
	}
	return acceptQUIC(l, s.maxConns, func(c *quic.Conn) {
		c.CloseWithError(doqExcessiveLoad, "too many connections")
	}, s.serveConn)
}

// acceptQUIC serves each connection of l on a goroutine of its own, at most limit at a
// time (0: any number); further ones are refused.
func acceptQUIC(l *quic.EarlyListener, limit int, refuse, serve func(*quic.Conn)) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	if limit <= 0 {
		limit = MaxStreamConnections
	}
	slots := make(chan struct{}, limit)
	for {
		conn, err := l.Accept(context.Background())
		if err != nil {
			if errors.Is(err, quic.ErrServerClosed) {
				return nil
			}
			return err
		}
		select {
		case slots <- struct{}{}:
		default:
			refuse(conn)
			continue
		}
		wg.Go(func() {
			defer func() { <-slots }()
			serve(conn)
		})
	}
}

// serveConn serves the streams of one connection, one query each.
func (s *ServerQUIC) serveConn(conn *quic.Conn) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		stream, err := conn.AcceptStream(context.Background())
		if err != nil {
			s.closed(conn, err)
			return
		}
		s.workers <- struct{}{}
		wg.Go(func() {
			defer func() { <-s.workers }()
			s.serveStreamQUIC(conn, stream)
		})
	}
}

// closed counts the end of a connection: one that the client ended, or that was idle, ended well.
func (s *ServerQUIC) closed(conn *quic.Conn, err error) {
	var app *quic.ApplicationError
	var idle *quic.IdleTimeoutError
	switch {
	case errors.As(err, &app) && (app.Remote || app.ErrorCode == DoQCodeNoError), errors.As(err, &idle), errors.Is(err, quic.ErrServerClosed):
		return
	case errors.As(err, &app):
		return // closed by us, and counted then
	}
	s.closeConn(conn, DoQCodeInternalError)
}

func (s *ServerQUIC) closeConn(conn *quic.Conn, code quic.ApplicationErrorCode) {
	log.Debugf("closing quic conn %s with code %d", conn.LocalAddr(), code)
	s.count(code)
	conn.CloseWithError(code, "")
}

func (s *ServerQUIC) count(code quic.ApplicationErrorCode) {
	vars.QUICResponsesCount.WithLabelValues(s.Addr, fmt.Sprintf("0x%x", uint64(code))).Inc()
}

// serveStreamQUIC answers the query of one stream (RFC 9250 §4.2).
func (s *ServerQUIC) serveStreamQUIC(conn *quic.Conn, stream *quic.Stream) {
	stream.SetReadDeadline(time.Now().Add(s.ReadTimeout))
	msg, err := readDoQ(stream)
	if err != nil {
		log.Debugf("reading a query of a quic stream: %s", err)
		s.closeConn(conn, DoQCodeProtocolError)
		return
	}
	w := &DoQWriter{localAddr: conn.LocalAddr(), remoteAddr: conn.RemoteAddr(), stream: stream, timeout: s.WriteTimeout}
	state := conn.ConnectionState().TLS
	w.tls = &state
	s.ServeDNS(stream.Context(), w, msg)
	if w.Msg == nil {
		stream.CancelWrite(doqRequestCancelled)
	}
	s.count(DoQCodeNoError)
}

// readDoQ reads a query with its length before it and checks what DoQ asks of it.
func readDoQ(r io.Reader) (*dns.Msg, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, fmt.Errorf("length: %w", err)
	}
	n := binary.BigEndian.Uint16(length[:])
	if n == 0 {
		return nil, errors.New("length is zero")
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("message: %w", err)
	}
	m, err := dnsutil.UnpackRequest(b)
	if err != nil {
		return nil, err
	}
	if m.Id != 0 {
		return nil, errors.New("message id is not zero")
	}
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if o.Option() == dns.EDNS0TCPKEEPALIVE {
				return nil, errors.New("keepalive option")
			}
		}
	}
	return m, nil
}

// AddPrefix is b with its length before it, as DoQ and TCP frame messages.
func AddPrefix(b []byte) (m []byte) {
	m = binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(b)), uint16(len(b)))
	return append(m, b...)
}
