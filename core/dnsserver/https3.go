package dnsserver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// ServerHTTPS3 serves DNS over HTTP/3 (RFC 8484, RFC 9114).
type ServerHTTPS3 struct {
	*Server
	httpsServer *http3.Server
	tlsConfig   *tls.Config
	quicConfig  *quic.Config
	valid       func(*http.Request) bool
	maxConns    int
}

var errNoTLS = errors.New("DoH3 requires TLS, no TLS config found")

// NewServerHTTPS3 is a ServerHTTPS3 for the blocks of group, at addr (https3://:443). It opens no socket.
func NewServerHTTPS3(addr string, group []*Config) (*ServerHTTPS3, error) {
	s, err := NewServer(addr, group)
	if err != nil {
		return nil, err
	}
	tlsConfig := tlsConfigOf(group, "h3")
	if tlsConfig == nil {
		return nil, errNoTLS
	}
	sh := &ServerHTTPS3{
		Server:    s,
		tlsConfig: http3.ConfigureTLSConfig(tlsConfig),
		valid:     validator(group),
		maxConns:  s.limits.connections,
	}
	sh.quicConfig = &quic.Config{MaxIdleTimeout: s.IdleTimeout, Allow0RTT: true, EnableDatagrams: true}
	if n := s.limits.streams; n > 0 {
		sh.quicConfig.MaxIncomingStreams = int64(n)
	}
	sh.httpsServer = &http3.Server{
		Handler:         sh,
		TLSConfig:       sh.tlsConfig,
		QUICConfig:      sh.quicConfig,
		EnableDatagrams: true,
		MaxHeaderBytes:  DefaultHTTPS3MaxHeaderBytes,
	}
	return sh, nil
}

// Listen opens nothing: there is no TCP here.
func (s *ServerHTTPS3) Listen() (net.Listener, error) { return nil, nil }

// Serve does nothing: there is no TCP here.
func (s *ServerHTTPS3) Serve(net.Listener) error { return nil }

// ListenPacket opens the UDP socket.
func (s *ServerHTTPS3) ListenPacket() (net.PacketConn, error) {
	return reuseport.ListenPacket("udp", strings.TrimPrefix(s.Addr, transport.HTTPS3+"://"))
}

// ServePacket serves requests that come on p until the server is stopped.
func (s *ServerHTTPS3) ServePacket(pc net.PacketConn) error {
	l, err := quic.ListenEarly(s.wrapPacket(pc), s.tlsConfig, s.quicConfig)
	if err != nil {
		return err
	}
	if !s.start(&http3Stopper{server: s.httpsServer, listener: l, conn: pc}) {
		l.Close()
		return pc.Close()
	}
	return acceptQUIC(l, s.maxConns, func(c *quic.Conn) {
		c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeExcessiveLoad), "too many connections")
	}, func(c *quic.Conn) { s.httpsServer.ServeQUICConn(c) })
}

type http3Stopper struct {
	server   *http3.Server
	listener *quic.EarlyListener
	conn     net.PacketConn
	once     sync.Once
}

func (h *http3Stopper) stop(ctx context.Context) error {
	err := h.server.Shutdown(ctx)
	h.once.Do(func() {
		h.listener.Close()
		h.conn.Close()
	})
	return err
}

// Shutdown stops the server. See Server.Stop.
func (s *ServerHTTPS3) Shutdown() error { return s.Stop() }

// ServeHTTP answers one request.
func (s *ServerHTTPS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	remote := net.Addr(&net.UDPAddr{})
	if a, err := net.ResolveUDPAddr("udp", r.RemoteAddr); err == nil {
		remote = a
	}
	dw := &DoHWriter{laddr: s.localAddr(r), raddr: remote, request: r}
	s.serveHTTP(w, r, s.valid, dw, vars.HTTPS3ResponsesCount)
}
