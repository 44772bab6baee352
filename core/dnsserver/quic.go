//go:build !noquic

package dnsserver

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/coredns/coredns/core/internal/doq"
	"github.com/coredns/coredns/core/internal/quicconn"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// DoQWriter is the dns.ResponseWriter of a query that came over QUIC.
type DoQWriter = doq.Writer

// Codes with which DoQ connections are closed (RFC 9250 §4.3).
const (
	DoQCodeNoError       = doq.CodeNoError
	DoQCodeInternalError = doq.CodeInternalError
	DoQCodeProtocolError = doq.CodeProtocolError
)

// AddPrefix is b with its length before it, as DoQ and TCP frame messages.
func AddPrefix(b []byte) (m []byte) { return doq.Frame(b) }

func init() {
	makers[transport.QUIC] = func(addr string, group []*Config) (server, error) {
		s, err := NewServerQUIC(addr, group)
		if err == nil && s.settings.TLS == nil {
			// It could not listen. That is told before anything is started, and in a dry run, in the words of caddy.
			err = fmt.Errorf("%s: %w", "ListenPacket", errNoQUICTLS)
		}
		return s, err
	}
}

// ServerQUIC serves DNS over QUIC (RFC 9250).
type ServerQUIC struct {
	*Server
	settings  *doq.Settings
	transport *quicconn.Transport
}

// NewServerQUIC is a ServerQUIC for the blocks of group, at addr (quic://:853). It opens no socket.
func NewServerQUIC(addr string, group []*Config) (*ServerQUIC, error) {
	s, err := NewServer(addr, group)
	if err != nil {
		return nil, err
	}
	workers := orDefault(firstSet(group, func(c *Config) *int { return c.MaxQUICWorkerPoolSize }), DefaultQUICStreamWorkers)
	settings := &doq.Settings{
		Configs: quicconn.Configs{TLS: tlsConfigOf(group, "doq"), QUIC: quicconn.Config(&s.limits.Limits, s.IdleTimeout, false)},
		Workers: make(chan struct{}, max(1, workers)),
	}
	settings.QUIC.MaxIncomingUniStreams = -1
	s.proto = settings
	return &ServerQUIC{Server: s, settings: settings}, nil
}

// Listen opens nothing: there is no TCP here.
func (s *ServerQUIC) Listen() (net.Listener, error) { return nil, nil }

// Serve does nothing: there is no TCP here.
func (s *ServerQUIC) Serve(net.Listener) error { return s.nothingToServe() }

// ListenPacket opens the UDP socket.
func (s *ServerQUIC) ListenPacket() (net.PacketConn, error) {
	if s.settings.TLS == nil {
		return nil, errNoQUICTLS
	}
	return s.listenUDP()
}

var errNoQUICTLS = errors.New("quic: tls.Config not set")

// ServePacket serves queries that come on p until the server is stopped.
func (s *ServerQUIC) ServePacket(p net.PacketConn) error {
	if s.settings.TLS == nil {
		return errNoQUICTLS
	}
	passed, opened, over := s.serving()
	defer over()
	t, ok := takeOver(s.Server, func(t *quicconn.Transport) bool { return t.Fits(s.service(), s.readsProxyHeaders()) })
	if ok {
		s.keep(p) // t reads from a descriptor of its own
	} else {
		p, ok := s.quicPackets(p, passed)
		if !ok {
			return p.Close()
		}
		var err error
		codes := quicconn.Codes{None: doq.CodeNoError, TooMany: doq.CodeExcessiveLoad}
		if t, err = quicconn.Listen(s.service(), p, s.wrapPacket(p), codes); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.transport = t
	s.mu.Unlock()
	if !s.start(t) {
		return t.Stop(context.Background())
	}
	opened()
	return s.ServeQUIC()
}

// Stop stops the server. See Server.Stop.
func (s *ServerQUIC) Stop() error { return s.Server.Stop() }

// ServeQUIC serves the connections that the listener of ServePacket gets, until it is closed.
func (s *ServerQUIC) ServeQUIC() error {
	s.mu.Lock()
	t := s.transport
	s.mu.Unlock()
	if t == nil {
		return errors.New("quic: no listener to serve on")
	}
	return t.Serve(s.service(), doq.Serve)
}
