package conn

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/coredns/coredns/plugin"
	pkgproxyproto "github.com/coredns/coredns/plugin/pkg/proxyproto"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/pires/go-proxyproto"
)

// Proxied is l for connections that may begin with a PROXY header, as policy says; label is that of metrics.
// Without policy it is l.
func Proxied(l net.Listener, policy proxyproto.ConnPolicyFunc, label string) net.Listener {
	if policy == nil {
		return l
	}
	return &proxyListener{l, Refusals(label), policy}
}

// proxyRefused counts PROXY headers that had no effect.
var proxyRefused = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace, Subsystem: "dns", Name: "proxy_headers_refused_total",
	Help: "Counter of PROXY protocol headers that were ignored or rejected, or are invalid.",
}, []string{"server", "reason"})

// Refusals counts headers that had no effect, for the server with this address.
type Refusals string

// Add counts one.
func (r Refusals) Add(why pkgproxyproto.Reason) {
	proxyRefused.WithLabelValues(string(r), string(why)).Inc()
}

// CountFromZero makes the counters: who watches them sees the first step, too.
func (r Refusals) CountFromZero() {
	for _, why := range []pkgproxyproto.Reason{pkgproxyproto.Ignored, pkgproxyproto.Rejected, pkgproxyproto.Invalid} {
		proxyRefused.WithLabelValues(string(r), string(why))
	}
}

// proxyListener gives connections whose first octets may be a PROXY header, version 1 or 2.
type proxyListener struct {
	net.Listener
	refused Refusals
	policy  proxyproto.ConnPolicyFunc
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
			l.refused.Add(pkgproxyproto.Rejected)
			conn.Close()
		case policy == proxyproto.SKIP:
			return conn, nil
		default:
			return &proxyConn{Conn: conn, refused: l.refused, policy: policy, r: bufio.NewReaderSize(conn, proxyBuffer)}, nil
		}
	}
}

// proxyBuffer has room for the longest header of version 1, and the usual ones of version 2.
const proxyBuffer = 256

// proxyConn is a connection that may begin with a PROXY header. The header is read with the first octets, or when
// somebody asks for the addresses.
type proxyConn struct {
	net.Conn
	refused Refusals
	policy  proxyproto.Policy

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

// longestLine is the octets that a header of version 1 has at most.
const longestLine = 107

// awaitLine waits until a header of version 1 is there whole, if one has begun to come: it may come in parts, which the
// library does not take.
func awaitLine(r *bufio.Reader) error {
	for n := 1; n <= longestLine; n++ {
		b, err := r.Peek(n)
		begun := bytes.HasPrefix(b, proxyproto.SIGV1)
		switch {
		case err != nil && begun:
			return err
		case err != nil, !begun && !bytes.HasPrefix(proxyproto.SIGV1, b), b[n-1] == '\n':
			return nil
		}
	}
	return nil
}

func (c *proxyConn) readHeader() error {
	var h *proxyproto.Header
	err := awaitLine(c.r)
	if err == nil {
		h, err = proxyproto.Read(c.r)
	}
	switch {
	case errors.Is(err, proxyproto.ErrNoProxyProtocol):
		if c.policy == proxyproto.REQUIRE {
			c.refused.Add(pkgproxyproto.Invalid)
			return errProxyHeader
		}
		return nil
	case err != nil:
		var nerr net.Error
		if !errors.As(err, &nerr) { // else it has not come
			c.refused.Add(pkgproxyproto.Invalid)
		}
		return err
	case c.policy == proxyproto.REJECT:
		c.refused.Add(pkgproxyproto.Rejected)
		return errProxyHeader
	case c.policy != proxyproto.USE && c.policy != proxyproto.REQUIRE:
		c.refused.Add(pkgproxyproto.Ignored)
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

// Peer is the address that a connection comes from, as the system knows it: a proxy may have told another one.
func Peer(nc net.Conn) netip.Addr {
	if p, ok := nc.(interface{ Raw() net.Conn }); ok {
		nc = p.Raw()
	}
	return wire.AddrOf(nc.RemoteAddr())
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
