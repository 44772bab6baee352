package conn

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/log"
)

// How far a TLS handshake is.
const (
	shaken  = iota // over, or there is none
	awaited        // nothing has come of it
	begun          // the client has said something
)

// handshakeTime is how long a client that has begun a handshake has for the rest of it when the server stops. It may
// have sent its query already (RFC 8446 §2), which nobody else answers, and be far away or slow.
const handshakeTime = time.Second

// handshake finds out who the client is, and completes TLS, where there is TLS. The client's time for a query begins
// when it is over: it may have taken long, and a place for the connection may have been waited for.
func (c *Conn) handshake() bool {
	defer func() {
		c.ready = time.Now()
		c.Touch(c.ready)
	}()
	if !c.identify() {
		return false
	}
	if c.tls == nil {
		return true
	}
	s := c.Service()
	if s.Handshake > 0 {
		c.conn.SetDeadline(time.Now().Add(s.Handshake))
	}
	c.shaking.Store(awaited)
	defer c.shaking.Store(shaken)
	if c.Stopping() { // Drain may have been before us
		c.conn.SetReadDeadline(time.Now().Add(service.DrainTime))
	}
	if err := c.tls.HandshakeContext(context.Background()); err != nil {
		log.Debugf("TLS handshake error from %s: %s", c.RemoteAddr(), err)
		c.late(s, err)
		return false
	}
	c.conn.SetDeadline(time.Time{})
	state := c.tls.ConnectionState()
	c.TLS = &state
	c.QuickAck() // the end of the handshake, which the client may await before it asks
	return true
}

// late counts err, if it is that the client was too slow. Where the server stops, it is not the client who ends.
func (c *Conn) late(s *service.Service, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.Stopping() {
		s.Limited("handshake_time")
	}
}

// DrainRead has the reader end when what is on its way has come.
func (c *Conn) DrainRead() {
	c.conn.SetReadDeadline(time.Now().Add(service.DrainTime))
	if c.shaking.Load() == begun {
		c.conn.SetReadDeadline(time.Now().Add(handshakeTime))
	}
	c.wake()
}

// heard notes that something has come of a handshake. It may be the first word while the server stops. The client may
// hold each record back until the one before it is acknowledged.
func (c *Conn) heard() {
	if !c.shaking.CompareAndSwap(awaited, begun) {
		return
	}
	c.QuickAck()
	if c.Stopping() {
		c.conn.SetReadDeadline(time.Now().Add(handshakeTime))
	}
}
