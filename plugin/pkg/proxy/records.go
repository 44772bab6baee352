package proxy

import (
	"crypto/tls"
	"net"
	"sync"
)

// writeFrames writes messages, each with its length before it, at once, and over TLS in a record each. Some servers,
// such as dnsdist 1.7, read one message of a record and wait for the socket before they look at what is left of it,
// which may be for ever.
func writeFrames(conn net.Conn, p []byte) (err error) {
	under := (*heldConn)(nil)
	if secure, ok := conn.(*tls.Conn); ok && frameLen(p) < len(p) {
		under, _ = secure.NetConn().(*heldConn)
	}
	if under == nil {
		_, err = conn.Write(p)
		return err
	}
	// One record after the other goes into memory, and all of them by one call to the system.
	under.hold(true)
	for len(p) > 0 && err == nil {
		n := min(frameLen(p), len(p))
		_, err = conn.Write(p[:n])
		p = p[n:]
	}
	if e := under.hold(false); err == nil {
		err = e
	}
	return err
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
	if c.held = on; !on {
		_, err = c.Conn.Write(c.buf)
		c.buf = nil
	}
	return err
}
