package dnsserver

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/nonblock"
)

// endpoint is our end of one connection, whatever is spoken on it: its sockets, TLS, and what its listener has
// to know about it.
//
//	conn ──▶ low ──▶ tls ──▶ upper: what is spoken
//	         │
//	         └── before it waits: idle
type endpoint struct {
	transport *streamTransport
	ticket    *ticket
	conn      net.Conn    // as accepted
	low       *gatherConn // around conn
	tls       *tls.Conn   // around low; nil without TLS
	upper     net.Conn    // tls, or low
	state     *tls.ConnectionState
	inflight  inflight
	last      atomic.Int64 // when it had a query last; see admitted
}

// readSpace is how much is read at one time.
const readSpace = 4096

// open makes the endpoint one of t. idle is called before a read that may wait. Without config there is no TLS.
func (e *endpoint) open(t *streamTransport, conn net.Conn, config *tls.Config, idle func()) {
	e.transport, e.conn = t, conn
	e.low = &gatherConn{Conn: nonblock.Conn(conn), owner: e, idle: idle}
	e.upper = e.low
	if config != nil {
		e.low.buf = make([]byte, readSpace)
		e.tls = tls.Server(e.low, config)
		e.upper = e.tls
	}
	e.last.Store(sinceStart())
}

// peerOf is the address that a connection comes from, as the system knows it: a proxy may have told another one.
func peerOf(conn net.Conn) netip.Addr {
	if p, ok := conn.(interface{ Raw() net.Conn }); ok {
		conn = p.Raw()
	}
	return addrOf(conn.RemoteAddr())
}

func (e *endpoint) idleSince() (int64, bool) { return e.last.Load(), !e.inflight.busy() }
func (e *endpoint) admit(t *ticket)          { e.ticket = t }
func (e *endpoint) evict()                   { e.conn.Close() }
func (e *endpoint) cut()                     { e.conn.Close() }
func (e *endpoint) base() *Server            { return e.transport.server }
func (e *endpoint) room() *waitingQuery      { return nil }

// begin counts a query of the connection, until end.
func (e *endpoint) begin() { e.inflight.add() }

func (e *endpoint) end() {
	e.last.Store(sinceStart())
	e.inflight.done()
}

// handshake finds out who the client is, and completes TLS, where there is TLS.
func (e *endpoint) handshake() bool {
	if !e.identify() {
		return false
	}
	if e.tls == nil {
		return true
	}
	s := e.base()
	if s.limits.handshake > 0 {
		e.conn.SetDeadline(time.Now().Add(s.limits.handshake))
	}
	if err := e.tls.Handshake(); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.limited("handshake_time")
		}
		return false
	}
	e.conn.SetDeadline(time.Time{})
	state := e.tls.ConnectionState()
	e.state = &state
	return true
}

// patience is how long to wait on for the next query of a client that may be idle for so long: that time begins when its
// last query has been answered.
func (e *endpoint) patience(idle time.Duration) time.Duration {
	if e.inflight.busy() {
		return idle
	}
	return idle - time.Duration(sinceStart()-e.last.Load())
}

// setReadDeadline gives the client time for its next query: as long as it may be idle, or while the server is being
// stopped, as long as the query may have been on its way.
func (e *endpoint) setReadDeadline(timeout time.Duration) {
	t := e.transport
	now := time.Now()
	if !t.stopping.Load() {
		e.conn.SetReadDeadline(now.Add(timeout))
		if !t.stopping.Load() {
			return // else stop may have set its deadline before us
		}
	}
	if now.Before(t.until) {
		e.conn.SetReadDeadline(now.Add(drainTime))
	}
}

// closeTLS tells the client that no more comes, where there is TLS.
func (e *endpoint) closeTLS() {
	if e.tls != nil {
		e.conn.SetWriteDeadline(time.Now().Add(drainTime))
		e.tls.CloseWrite()
	}
}
