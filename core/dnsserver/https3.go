//go:build !nohttps3

package dnsserver

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/coredns/coredns/core/internal/doh"
	"github.com/coredns/coredns/core/internal/quicconn"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func init() {
	makers[transport.HTTPS3] = func(addr string, group []*Config) (server, error) { return NewServerHTTPS3(addr, group) }
}

// ServerHTTPS3 serves DNS over HTTP/3 (RFC 8484, RFC 9114).
type ServerHTTPS3 struct {
	*Server
	settings *doh.HTTP3Settings
}

var h3Codes = quicconn.Codes{None: quic.ApplicationErrorCode(http3.ErrCodeNoError), TooMany: quic.ApplicationErrorCode(http3.ErrCodeExcessiveLoad)}

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
	settings := &doh.HTTP3Settings{
		Settings: doh.Settings{Valid: validator(group), Responses: vars.HTTPS3ResponsesCount},
		Configs:  quicconn.Configs{TLS: http3.ConfigureTLSConfig(tlsConfig), QUIC: quicconn.Config(&s.limits.Limits, s.IdleTimeout, true)},
	}
	settings.QUIC.EnableDatagrams = true
	s.proto = settings
	return &ServerHTTPS3{Server: s, settings: settings}, nil
}

// Listen opens nothing: there is no TCP here.
func (s *ServerHTTPS3) Listen() (net.Listener, error) { return nil, nil }

// Serve does nothing: there is no TCP here.
func (s *ServerHTTPS3) Serve(net.Listener) error { return s.nothingToServe() }

// ListenPacket opens the UDP socket.
func (s *ServerHTTPS3) ListenPacket() (net.PacketConn, error) { return s.listenUDP() }

// ServePacket serves requests that come on p until the server is stopped.
func (s *ServerHTTPS3) ServePacket(p net.PacketConn) error {
	passed, opened, over := s.serving()
	defer over()
	service := s.service()
	t, ok := takeOver(s.Server, func(t *doh.HTTP3) bool {
		return t.Fits(service, s.readsProxyHeaders()) && t.FitsHTTP(s.headerSpace(), s.IdleTimeout)
	})
	if ok {
		s.keep(p) // t reads from a descriptor of its own
	} else {
		p, ok := s.quicPackets(p, passed)
		if !ok {
			return p.Close()
		}
		q, err := quicconn.Listen(service, p, s.wrapPacket(p), h3Codes)
		if err != nil {
			return err
		}
		t = doh.NewHTTP3(q, s.headerSpace(), s.IdleTimeout)
	}
	if !s.start(t) {
		return t.Stop(context.Background())
	}
	opened()
	return t.Serve(service, t.ServeConn)
}

// Shutdown stops the server. See Server.Stop.
func (s *ServerHTTPS3) Shutdown() error { return s.Stop() }

// Stop stops the server. See Server.Stop.
func (s *ServerHTTPS3) Stop() error { return s.Server.Stop() }

// ServeHTTP answers one request.
func (s *ServerHTTPS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	doh.Answer(s.service(), w, r, true)
}
