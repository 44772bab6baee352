//go:build !nohttps

package dnsserver

import (
	"crypto/tls"
	"net"
	"net/http"
	"strconv"

	"github.com/coredns/coredns/core/internal/doh"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

func init() {
	makers[transport.HTTPS] = func(addr string, group []*Config) (server, error) { return NewServerHTTPS(addr, group) }
}

// ServerHTTPS serves DNS over HTTP/1.1 and HTTP/2 (RFC 8484).
type ServerHTTPS struct {
	*Server
	tlsConfig *tls.Config
}

// NewServerHTTPS is a ServerHTTPS for the blocks of group, at addr (https://:443). It opens no socket.
func NewServerHTTPS(addr string, group []*Config) (*ServerHTTPS, error) {
	s, err := NewServer(addr, group)
	if err != nil {
		return nil, err
	}
	sh := &ServerHTTPS{Server: s, tlsConfig: tlsConfigOf(group, "h2", "http/1.1")}
	if sh.tlsConfig != nil {
		// Replies are short: small first records would only make more of them.
		sh.tlsConfig.DynamicRecordSizingDisabled = true
	}
	s.proto = &doh.Settings{
		Valid: validator(group), Responses: vars.HTTPSResponsesCount,
		Good: vars.HTTPSResponsesCount.WithLabelValues(s.Addr, strconv.Itoa(http.StatusOK)),
	}
	return sh, nil
}

// Listen opens the TCP socket.
func (s *ServerHTTPS) Listen() (net.Listener, error) { return s.listenTCP() }

// ListenPacket opens nothing: there is no UDP here.
func (s *ServerHTTPS) ListenPacket() (net.PacketConn, error) { return nil, nil }

// ServePacket does nothing: there is no UDP here.
func (s *ServerHTTPS) ServePacket(net.PacketConn) error { return s.nothingToServe() }

// Serve serves requests that come on connections of l until the server is stopped.
func (s *ServerHTTPS) Serve(l net.Listener) error {
	if s.tlsConfig == nil {
		s.warnPlain()
	}
	return s.serveStream(l, stream{tls: s.tlsConfig, http1: &doh.HTTP1Settings{
		Read: s.ReadTimeout, Write: s.WriteTimeout, Idle: s.IdleTimeout, Header: s.headerSpace(),
	}})
}

// Shutdown stops the server. See Server.Stop.
func (s *ServerHTTPS) Shutdown() error { return s.Stop() }

// ServeHTTP answers one request.
func (s *ServerHTTPS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	doh.Answer(s.service(), w, r, false)
}
