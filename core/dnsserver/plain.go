package dnsserver

import (
	"context"
	"crypto/tls"
	"net"
	"slices"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/doh"
	"github.com/coredns/coredns/core/internal/tcp"
	"github.com/coredns/coredns/core/internal/udp"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// Listen opens the TCP socket. The UDP socket is opened before it, and ListenPacket returns that one: who finds that
// the server takes connections, as probes do, may ask over UDP.
func (s *Server) Listen() (net.Listener, error) {
	s.service() // as WireLane is now: who started the server may set it for another one
	p, err := s.openUDP()
	if err != nil { // ListenPacket will tell, unless TCP fails, too
		return s.listenTCP()
	}
	l, err := s.listenTCP()
	if err != nil {
		p.Close()
		return nil, err
	}
	s.setPacket(p)
	return l, nil
}

// setPacket makes p the socket that ListenPacket returns next, and returns the one that it would have returned.
func (s *Server) setPacket(p net.PacketConn) (old net.PacketConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, s.packet = s.packet, p
	return old
}

// WrapListener has the copies of a listener that was taken over be such as those of one that was opened here. What
// wraps connections is put on when serving begins.
func (s *Server) WrapListener(ln net.Listener) net.Listener { return handedOn(ln) }

// Serve serves queries that come on connections of l until the server is stopped; then it closes l.
func (s *Server) Serve(l net.Listener) error { return s.serveStream(l, stream{}) }

// stream is what is spoken on the connections of a listener.
type stream struct {
	tls   *tls.Config        // nil for none
	http1 *doh.HTTP1Settings // for DNS over HTTP, nil for DNS over TCP or TLS
}

// handler is what serves the connections of t.
func (st stream) handler(t *listener) conn.Handler {
	if st.http1 != nil {
		return doh.Handler(st.tls, t.http1)
	}
	h := tcp.Handler
	h.TLS = st.tls
	return h
}

// listener is a conn.Listener with what serves its connections of HTTP/1.1, nil if it is none of DNS over HTTP.
type listener struct {
	*conn.Listener
	http1 *doh.HTTP1
}

// speaks reports whether the connections of t can be served as st wants it.
func (t *listener) speaks(st stream) bool {
	if t.http1 == nil || st.http1 == nil {
		return t.http1 == nil && st.http1 == nil
	}
	return t.http1.HTTP1Settings == *st.http1
}

// newListener is a listener without connections.
func (s *Server) newListener(st stream, addr net.Addr) *listener {
	t := &listener{Listener: conn.NewListener(s.service(), conn.ClientAuthOf(st.tls))}
	if st.http1 != nil {
		t.http1 = doh.NewHTTP1(*st.http1, &t.Seat, addr)
		t.Beside = t.http1
	}
	return t
}

// serveStream serves the connections of l.
func (s *Server) serveStream(l net.Listener, st stream) error {
	_, opened, over := s.serving()
	defer over()
	l = s.wrapListener(l)
	t, ok := takeOver(s, func(t *listener) bool {
		return t.Fits(conn.ClientAuthOf(st.tls)) && t.speaks(st)
	})
	if !ok {
		t = s.newListener(st, l.Addr())
	}
	t.ListenOn(l)
	if !s.start(t) {
		l.Close()
		t.Listener.Serve(l, conn.Handler{}) // it ends at once
		return t.Stop(context.Background())
	}
	opened()
	return t.Listener.Serve(l, st.handler(t))
}

// wrapListener makes l understand the PROXY protocol, if a block wants it.
func (s *Server) wrapListener(l net.Listener) net.Listener {
	return conn.Proxied(plain(l), s.proxyPolicy(), s.Addr)
}

// ListenPacket opens the UDP socket, or returns the one that Listen has opened.
func (s *Server) ListenPacket() (net.PacketConn, error) {
	if p := s.setPacket(nil); p != nil {
		return p, s.generation.tried(p, nil)
	}
	return s.listenUDP()
}

// ServePacket serves queries that come on p until the server is stopped; then it closes p. If p is a plain
// UDP socket that nobody wraps, further sockets at its address are opened, so that there is one for each core.
func (s *Server) ServePacket(p net.PacketConn) error {
	_, opened, over := s.serving()
	defer over()
	o := udp.Options{
		One: s.oneSocket(), Others: s.others, Proxy: s.proxyPackets(p), Shed: s.sheds(), Saturated: &s.saturated,
	}
	for _, cfg := range s.configs {
		for _, name := range cfg.Direct {
			if !slices.Contains(o.Direct, name) {
				o.Direct = append(o.Direct, name)
			}
		}
		if cfg.UDPDecorateWriterFunc != nil {
			o.Decorate = cfg.UDPDecorateWriterFunc(s)
		}
	}
	u := udp.New(s.service(), p, o)
	if !s.start(u) {
		u.Close()
		return nil
	}
	opened()
	u.Serve()
	return nil
}

// oneSocket reports whether it is said how many servers the address has, each with one socket of its own.
func (s *Server) oneSocket() bool { return len(s.configs) > 0 && s.configs[0].NumSockets > 0 }

// hasExtraSockets reports whether ServePacket opens further sockets beside the one that it is given. Other schemes have
// no sockets of this kind, and what a block wraps around a socket is wrapped around one.
func (s *Server) hasExtraSockets() bool {
	if len(s.configs) == 0 || s.configs[0].Transport != transport.DNS || s.oneSocket() {
		return false
	}
	for _, cfg := range s.configs {
		if cfg.UDPDecorateWriterFunc != nil {
			return false
		}
	}
	return true
}

// Shed reports whether a query that comes over UDP is to be dropped, since there are more replies than a socket of
// the listener can send; then it is counted. Plugins ask it; it is always false unless Config.Shed is set.
func (s *Server) Shed() bool {
	if s.saturated.Load() == 0 {
		return false
	}
	udp.ShedQuery(s.Addr)
	return true
}

// sheds reports whether a block wants replies to be dropped rather than waited for.
func (s *Server) sheds() bool {
	for _, cfg := range s.configs {
		if cfg.Shed {
			return true
		}
	}
	return false
}
