package dnsserver

import (
	"bufio"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	pkgproxyproto "github.com/coredns/coredns/plugin/pkg/proxyproto"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/pires/go-proxyproto"
)

// wrapListener makes l understand the PROXY protocol, if a block wants it.
func (s *Server) wrapListener(l net.Listener) net.Listener {
	if policy := s.proxyPolicy(); policy != nil {
		return &proxyListener{l, s, policy}
	}
	return l
}

// wrapPacket makes p understand the PROXY protocol, if a block wants it.
func (s *Server) wrapPacket(p net.PacketConn) net.PacketConn {
	if proxied := s.proxyPackets(p); proxied != nil {
		return proxied
	}
	return p
}

// proxyPolicy is what the first block says that says anything, nil if none does.
func (s *Server) proxyPolicy() proxyproto.ConnPolicyFunc {
	for _, cfg := range s.configs {
		if cfg.ProxyProtoConnPolicy != nil {
			return cfg.ProxyProtoConnPolicy
		}
	}
	return nil
}

// proxyPackets reads the PROXY headers of datagrams of p, nil if no block wants it.
func (s *Server) proxyPackets(p net.PacketConn) *pkgproxyproto.PacketConn {
	for _, cfg := range s.configs {
		if cfg.ProxyProtoConnPolicy != nil {
			return &pkgproxyproto.PacketConn{
				PacketConn:                    p,
				ConnPolicy:                    cfg.ProxyProtoConnPolicy,
				UDPSessionTrackingTTL:         cfg.ProxyProtoUDPSessionTrackingTTL,
				UDPSessionTrackingMaxSessions: cfg.ProxyProtoUDPSessionTrackingMaxSessions,
				Refused:                       s.refusedHeader,
			}
		}
	}
	return nil
}

func (s *Server) refusedHeader(why pkgproxyproto.Reason) {
	proxyRefused.WithLabelValues(s.Addr, string(why)).Inc()
}

// proxyListener gives connections whose first octets may be a PROXY header, version 1 or 2.
type proxyListener struct {
	net.Listener
	server *Server
	policy proxyproto.ConnPolicyFunc
}

func (l *proxyListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		policy, err := l.policy(proxyproto.ConnPolicyOptions{Upstream: conn.RemoteAddr(), Downstream: conn.LocalAddr()})
		switch {
		case err != nil: // it cannot be known whether to believe what comes
			l.server.refusedHeader(pkgproxyproto.Rejected)
			conn.Close()
		case policy == proxyproto.SKIP:
			return conn, nil
		default:
			return &proxyConn{Conn: conn, server: l.server, policy: policy, r: bufio.NewReaderSize(conn, proxyBuffer)}, nil
		}
	}
}

// proxyBuffer has room for the longest header of version 1, and the usual ones of version 2.
const proxyBuffer = 256

// proxyConn is a connection that may begin with a PROXY header. The header is read with the first octets, or when somebody
// asks for the addresses.
type proxyConn struct {
	net.Conn
	server *Server
	policy proxyproto.Policy

	once          sync.Once
	err           error         // of the header
	remote, local net.Addr      // as the header tells them, nil if it does not
	r             *bufio.Reader // nil when all of it has been read
}

var errProxyHeader = errors.New("PROXY header is not accepted")

// header reads the header, if there is one.
func (c *proxyConn) header() error {
	c.once.Do(func() { c.err = c.readHeader() })
	return c.err
}

func (c *proxyConn) readHeader() error {
	h, err := proxyproto.Read(c.r)
	switch {
	case errors.Is(err, proxyproto.ErrNoProxyProtocol):
		if c.policy == proxyproto.REQUIRE {
			c.server.refusedHeader(pkgproxyproto.Invalid)
			return errProxyHeader
		}
		return nil
	case err != nil:
		var nerr net.Error
		if !errors.As(err, &nerr) { // else it has not come
			c.server.refusedHeader(pkgproxyproto.Invalid)
		}
		return err
	case c.policy == proxyproto.REJECT:
		c.server.refusedHeader(pkgproxyproto.Rejected)
		return errProxyHeader
	case c.policy != proxyproto.USE && c.policy != proxyproto.REQUIRE:
		c.server.refusedHeader(pkgproxyproto.Ignored)
		return nil
	}
	if src, dst, ok := h.TCPAddrs(); ok && !h.Command.IsLocal() {
		c.remote, c.local = src, dst
	}
	return nil
}

func (c *proxyConn) Read(b []byte) (int, error) {
	if err := c.header(); err != nil {
		return 0, err
	}
	if c.r == nil {
		return c.Conn.Read(b)
	}
	if c.r.Buffered() == 0 {
		c.r = nil
		return c.Conn.Read(b)
	}
	return c.r.Read(b)
}

// RemoteAddr is the client's address; it waits for the header.
func (c *proxyConn) RemoteAddr() net.Addr {
	if c.header() == nil && c.remote != nil {
		return c.remote
	}
	return c.Conn.RemoteAddr()
}

// LocalAddr is the address that the client connected to; it waits for the header.
func (c *proxyConn) LocalAddr() net.Addr {
	if c.header() == nil && c.local != nil {
		return c.local
	}
	return c.Conn.LocalAddr()
}

// Raw is the connection without the header's meaning.
func (c *proxyConn) Raw() net.Conn { return c.Conn }

// CloseWrite closes the half that we write to.
func (c *proxyConn) CloseWrite() error {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		return t.CloseWrite()
	}
	return nil
}

// identify finds out who the client of an endpoint is, if a proxy tells.
func (e *endpoint) identify() bool {
	c, ok := e.conn.(*proxyConn)
	if !ok {
		return true
	}
	if n := e.base().limits.handshake; n > 0 {
		e.conn.SetReadDeadline(time.Now().Add(n))
	}
	err := c.header()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		e.base().limited("handshake_time")
	}
	e.conn.SetReadDeadline(time.Time{})
	if c.remote != nil {
		e.ticket.move(addrOf(c.remote))
	}
	return err == nil
}

// proxiedBack is the way back by way of a proxy.
type proxiedBack struct {
	back
	client net.Addr
}

func (b *proxiedBack) remote(*wire.AddrRoom) net.Addr { return b.client }
