package dnsserver

import (
	"crypto/tls"
	"net"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// ServerTLS serves DNS over TLS (RFC 7858).
type ServerTLS struct {
	*Server
	tlsConfig *tls.Config
}

// NewServerTLS is a ServerTLS for the blocks of group, at addr (tls://:853). It opens no socket.
func NewServerTLS(addr string, group []*Config) (*ServerTLS, error) {
	s, err := NewServer(addr, group)
	if err != nil {
		return nil, err
	}
	return &ServerTLS{Server: s, tlsConfig: tlsConfigOf(group)}, nil
}

// tlsConfigOf is the TLS configuration of a listener: the first in the order of the file,
// with the given ALPN protocols if there are any. Without one the listener is plain.
func tlsConfigOf(group []*Config, protocols ...string) *tls.Config {
	for _, cfg := range group {
		if cfg.TLSConfig != nil {
			c := cfg.TLSConfig.Clone()
			if len(protocols) > 0 {
				c.NextProtos = protocols
			}
			return c
		}
	}
	return nil
}

// warnPlain tells that an encrypted transport is served without encryption.
func (s *Server) warnPlain() {
	log.Warningf("%s is served without TLS, as no tls directive configures it", s.Addr)
}

// Listen opens the TCP socket.
func (s *ServerTLS) Listen() (net.Listener, error) {
	return reuseport.Listen("tcp", strings.TrimPrefix(s.Addr, transport.TLS+"://"))
}

// ListenPacket opens nothing: there is no UDP here.
func (s *ServerTLS) ListenPacket() (net.PacketConn, error) { return nil, nil }

// Serve serves queries that come on connections of l until the server is stopped.
func (s *ServerTLS) Serve(l net.Listener) error {
	l = s.wrapListener(l)
	if s.tlsConfig == nil {
		s.warnPlain()
	} else {
		l = tls.NewListener(l, s.tlsConfig)
	}
	return s.serveStream(l)
}

// ServePacket does nothing: there is no UDP here.
func (s *ServerTLS) ServePacket(net.PacketConn) error { return nil }
