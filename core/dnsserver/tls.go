package dnsserver

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/log"
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
	return &ServerTLS{Server: s, tlsConfig: dotConfig(tlsConfigOf(group))}, nil
}

// dotConfig is c for DNS over TLS: clients that offer the protocol "dot" get it, as those of zone transfers want it
// (RFC 9103 §7.1), and what others offer does not matter.
func dotConfig(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	c.DynamicRecordSizingDisabled = true // replies are short, and go out together
	get := c.GetConfigForClient
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (chosen *tls.Config, err error) {
		if get != nil {
			chosen, err = get(hello)
		}
		if err != nil || !slices.Contains(hello.SupportedProtos, "dot") {
			return chosen, err
		}
		if chosen == nil {
			chosen = c
		}
		chosen = chosen.Clone()
		chosen.NextProtos = []string{"dot"}
		return chosen, nil
	}
	return c
}

// tlsConfigOf is the TLS configuration of a listener: the first in the order of the file,
// with the given ALPN protocols if there are any. Without one the listener is plain.
func tlsConfigOf(group []*Config, protocols ...string) *tls.Config {
	for _, cfg := range group {
		if cfg.TLSConfig != nil {
			return withProtocols(cfg.TLSConfig, protocols)
		}
	}
	return nil
}

// oneIdentity is an error if the blocks of a listener have different certificates: clients would get that of one of
// them, whatever they ask for.
func oneIdentity(addr string, group []*Config) error {
	var first *Config
	for _, cfg := range group {
		switch {
		case cfg.Transport == transport.DNS || cfg.TLSConfig == nil || cfg.TLSIdentity == "":
		case first == nil:
			first = cfg
		case first.TLSIdentity != cfg.TLSIdentity:
			return fmt.Errorf("cannot serve %s - %s and %s have different certificates", addr, first.Zone, cfg.Zone)
		}
	}
	return nil
}

// withProtocols is a copy of c, with these ALPN protocols if there are any, also in what c has for certain clients.
func withProtocols(c *tls.Config, protocols []string) *tls.Config {
	c = c.Clone()
	if len(protocols) == 0 {
		return c
	}
	c.NextProtos = protocols
	if get := c.GetConfigForClient; get != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			other, err := get(hello)
			if other != nil {
				other = other.Clone()
				other.NextProtos = protocols
			}
			return other, err
		}
	}
	return c
}

// warnPlain tells that an encrypted transport is served without encryption.
func (s *Server) warnPlain() {
	log.Warningf("%s is served without TLS, as no tls directive configures it", s.Addr)
}

// Listen opens the TCP socket.
func (s *ServerTLS) Listen() (net.Listener, error) { return s.listenTCP() }

// ListenPacket opens nothing: there is no UDP here.
func (s *ServerTLS) ListenPacket() (net.PacketConn, error) { return nil, nil }

// Serve serves queries that come on connections of l until the server is stopped.
func (s *ServerTLS) Serve(l net.Listener) error {
	if s.tlsConfig == nil {
		s.warnPlain()
	}
	return s.serveStream(l, stream{tls: s.tlsConfig})
}

// ServePacket does nothing: there is no UDP here.
func (s *ServerTLS) ServePacket(net.PacketConn) error { return s.nothingToServe() }
