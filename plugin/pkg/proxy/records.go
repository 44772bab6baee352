package proxy

import (
	"crypto/tls"
	"net"
	"sync"
)

// recordConn writes each message in a TLS record of its own, and all of them at once. Some servers, such as dnsdist 1.7,
// read one message of a record and wait for the socket before they look at what is left of it, which may be for ever.
type recordConn struct {
	*tls.Conn
	under *heldConn
}

// newRecordConn is TLS over conn, without the handshake.
func newRecordConn(conn net.Conn, cfg *tls.Config) *recordConn {
	under := &heldConn{Conn: conn}
	return &recordConn{tls.Client(under, cfg), under}
}

// Write writes messages, each with its length before it.
func (c *recordConn) Write(p []byte) (n int, err error) {
	if frameLen(p) >= len(p) {
		return c.Conn.Write(p)
	}
	c.under.hold(true)
	for n < len(p) && err == nil {
		_, err = c.Conn.Write(p[n:min(n+frameLen(p[n:]), len(p))])
		n += frameLen(p[n:])
	}
	if e := c.under.hold(false); err == nil {
		err = e
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// heldConn gathers what is written while it is held.
type heldConn struct {
	net.Conn
	mu   sync.Mutex // TLS writes by itself, too
	held bool
	buf  []byte
}

// NetConn is the connection below, as of tls.Conn.
func (c *heldConn) NetConn() net.Conn { return c.Conn }

// Write implements net.Conn.
func (c *heldConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held {
		c.buf = append(c.buf, p...)
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// hold begins to gather, or writes what was gathered.
func (c *heldConn) hold(on bool) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held = on; !on && len(c.buf) > 0 {
		_, err = c.Conn.Write(c.buf)
		c.buf = c.buf[:0]
		if cap(c.buf) > maxDatagram {
			c.buf = nil
		}
	}
	return err
}
