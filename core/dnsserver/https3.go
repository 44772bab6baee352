package dnsserver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

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
	valid       func(*http.Request) bool // nil: if the path is /dns-query
}

var h3Codes = quicCodes{quic.ApplicationErrorCode(http3.ErrCodeNoError), quic.ApplicationErrorCode(http3.ErrCodeExcessiveLoad)}

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
	sh := &ServerHTTPS3{Server: s, tlsConfig: http3.ConfigureTLSConfig(tlsConfig), quicConfig: quicConfigOf(s, true), valid: validator(group)}
	sh.quicConfig.EnableDatagrams = true
	sh.httpsServer = &http3.Server{
		Handler:         sh,
		TLSConfig:       sh.tlsConfig,
		QUICConfig:      sh.quicConfig,
		EnableDatagrams: true,
		MaxHeaderBytes:  s.headerRoom(),
		IdleTimeout:     s.IdleTimeout,
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
	t, err := listenQUIC(s.Server, pc, s.tlsConfig, s.quicConfig, h3Codes)
	if err != nil {
		return err
	}
	s.httpsServer.ConnContext = func(ctx context.Context, c *quic.Conn) context.Context {
		t.mu.Lock()
		defer t.mu.Unlock()
		for conn := range t.conns {
			if conn.Conn == c {
				return context.WithValue(ctx, busyConnKey{}, conn)
			}
		}
		return ctx
	}
	if !s.start(http3Stopper{t, s.httpsServer}) {
		return t.end(context.Background())
	}
	return t.serve(func(c *quicConn) { s.httpsServer.ServeQUICConn(c.Conn) })
}

type http3Stopper struct {
	*quicTransport
	http *http3.Server
}

// stop tells clients to open no more streams, answers what is at work, and closes the connections.
func (h http3Stopper) stop(ctx context.Context) error {
	told, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.http.Shutdown(told)
	}()
	err := h.end(ctx)
	cancel()
	<-done
	return err
}

// Shutdown stops the server. See Server.Stop.
func (s *ServerHTTPS3) Shutdown() error { return s.Stop() }

// Stop stops the server. See Server.Stop.
func (s *ServerHTTPS3) Stop() error { return s.Server.Stop() }

// ServeHTTP answers one request.
func (s *ServerHTTPS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	remote := net.Addr(&net.UDPAddr{})
	if a, err := net.ResolveUDPAddr("udp", r.RemoteAddr); err == nil {
		remote = a
	}
	if c, ok := r.Context().Value(busyConnKey{}).(*quicConn); ok {
		remote = clientOf(c.RemoteAddr())
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.ReadTimeout))
	}
	dw := &DoHWriter{server: s.Server, laddr: s.localAddr(r), raddr: remote, request: r}
	s.serveHTTP(w, r, s.valid, dw, vars.HTTPS3ResponsesCount)
}
