package proxy

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// http3Transport has the connection of HTTP/3 of one client, which is opened when a request needs it. In the library's
// own transport each request that fails takes the connection away which another one has had opened meanwhile: that then
// stays without requests until it was idle for long.
type http3Transport struct {
	pool *quicPool
	cfg  *tls.Config

	mu       sync.Mutex
	conn     *http3Conn // takes requests; nil if none does
	dialling *http3Dial // under way; nil if none is
}

// http3Conn is one connection.
type http3Conn struct {
	*http3.ClientConn
	local net.Addr

	users int // requests whose response is not read yet; guarded by the transport's lock
}

// http3Dial is the opening of a connection, which any number of requests wait for.
type http3Dial struct {
	done    chan struct{}
	conn    *http3Conn // both are settled when done is closed
	err     error
	waiters int // guarded by the transport's lock; they are the connection's first users
}

// RoundTrip implements http.RoundTripper. A request that got no stream, as the connection has just ended or takes no
// more (RFC 9114 §5.2), goes out on another one.
func (t *http3Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	trace := httptrace.ContextClientTrace(ctx)
	its, _ := ctx.Value(turnKey{}).(*takenTurn)
	for again := false; ; again = true {
		c, open, err := t.get(ctx)
		if err != nil {
			return nil, err
		}
		if trace != nil && trace.GotConn != nil {
			trace.GotConn(httptrace.GotConnInfo{Conn: localConn{local: c.local}, Reused: open})
		}
		resp, err := c.RoundTrip(r)
		if err == nil {
			resp.Body = &http3Body{resp.Body, t, c}
			return resp, nil
		}
		over := ctx.Err() != nil
		t.put(c, !over) // streams may be all that does not work any more, or is refused, of a connection
		if over || its == nil || its.wrote || again || !open {
			return nil, err
		}
	}
}

// get is the connection with one user more, and whether it was open before. The opening goes on without who asked
// first: others wait, and more will come.
func (t *http3Transport) get(ctx context.Context) (c *http3Conn, open bool, err error) {
	t.mu.Lock()
	if c = t.conn; c != nil && c.Context().Err() == nil {
		c.users++
		t.mu.Unlock()
		return c, true, nil
	}
	d := t.dialling
	if d == nil {
		d = &http3Dial{done: make(chan struct{})}
		t.dialling = d
		t.pool.engine.running.Go(func() { t.dial(d) })
	}
	d.waiters++
	t.mu.Unlock()
	select {
	case <-d.done:
		return d.conn, false, d.err
	case <-ctx.Done():
		t.leave(d)
		return nil, false, context.Cause(ctx)
	}
}

// leave is for who does not wait for d any more.
func (t *http3Transport) leave(d *http3Dial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d.waiters--; d.conn != nil {
		t.left(d.conn)
	}
}

// dial opens a connection for those who wait for d.
func (t *http3Transport) dial(d *http3Dial) {
	conn, err := t.pool.connect(t.pool.engine.ctx, t.cfg, 0) // HTTP/3 has three streams of the upstream's own
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(d.done)
	t.dialling = nil
	if d.err = err; err == nil {
		d.conn = &http3Conn{ClientConn: new(http3.Transport).NewClientConn(conn), local: conn.LocalAddr(), users: d.waiters}
		t.conn = d.conn
	}
}

// put gives c back. If it is no good, the next request has another one.
func (t *http3Transport) put(c *http3Conn, bad bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if bad && t.conn == c {
		t.conn = nil
	}
	t.left(c)
}

// left takes one user from c. A connection that takes no more requests is closed with the last one. t.mu is held.
func (t *http3Transport) left(c *http3Conn) {
	if c.users--; c.users == 0 && t.conn != c {
		c.CloseWithError(noHTTPError, "")
	}
}

// CloseIdleConnections is for http.Client.
func (t *http3Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.conn; c != nil && c.users == 0 {
		t.conn = nil
		c.CloseWithError(noHTTPError, "")
	}
}

// noHTTPError is the code of an end without a complaint (RFC 9114 §8.1).
const noHTTPError = quic.ApplicationErrorCode(http3.ErrCodeNoError)

// http3Body is the body of a response, whose connection has one user less when it is closed.
type http3Body struct {
	io.ReadCloser
	t *http3Transport
	c *http3Conn
}

func (b *http3Body) Close() error {
	err := b.ReadCloser.Close()
	if b.c != nil {
		b.t.put(b.c, false)
		b.c = nil
	}
	return err
}

// localConn is a connection of which only the local address is known.
type localConn struct {
	net.Conn
	local net.Addr
}

func (c localConn) LocalAddr() net.Addr { return c.local }
