// Package conn serves connections of a listener: it accepts and admits them, reads PROXY headers, does TLS, gathers
// what is written, and keeps the octets that wait for clients within bounds. What is spoken on a connection is the
// business of a Protocol.
//
//	Listener ──accept──▶ Admission ──▶ Conn ──▶ PROXY header, TLS ──▶ Protocol.Serve
//	                                    │ Upper: read from it        │
//	                                    └ Out: write to it ◀─────────┘
//
// A Listener is an heirloom: in a reload the next server goes on with its connections. Each connection has a
// goroutine, which runs the protocol; Out may be used by any. Before it needs one, it may be a Light, which has none.
// Start at Listener.Serve; then Conn.
package conn

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
)

// Protocol is what is spoken on one connection.
type Protocol interface {
	// Serve serves the connection until no more comes from the client. What is in flight then is waited for. After
	// Conn.Rest it returns earlier, and is called again.
	Serve()
	// BeforeWait is called before a read that may wait: all that has come is served.
	BeforeWait()
	// Drain is called when the server stops. Any goroutine may call it.
	Drain()
}

// Conn is our end of one connection.
//
//	conn ──▶ low ──▶ tls ──▶ Upper: what is spoken
//	         │
//	         └── before it waits: Protocol.BeforeWait
type Conn struct {
	// Upper is what is read from and written to: with TLS that of crypto/tls.
	Upper net.Conn
	// Out writes to Upper. A protocol that uses Upper itself does not use it.
	Out Writer
	// TLS is the state of the connection, nil without TLS.
	TLS *tls.ConnectionState
	// Look is until when it is read on at its end, though the server stops: for what may just come, or is needed for
	// what the client is owed. It is zero before that.
	Look time.Time
	// Untold says that the protocol has no way to tell a client that the server stops. It is set before the
	// first query is read.
	Untold bool

	listener *Listener
	protocol Protocol
	slot     *Slot
	conn     net.Conn // as accepted
	low      *lowerConn
	tls      *tls.Conn // around low; nil without TLS
	service.Holder
	inflight service.Inflight
	last     atomic.Int64              // when it had a query last, or was ready for one; see Evictable
	ready    time.Time                 // when the handshake was over
	evicted  atomic.Pointer[time.Time] // when it has given way; nil if it has not
	hijacked atomic.Bool
	shaking  atomic.Int32 // how far its TLS handshake is
	lingers  bool         // at its end
	looks    int          // at its end; its reader's, as Look
	rest     rest
}

// Of is the Conn whose Upper nc is, nil if it is none.
func Of(nc net.Conn) *Conn {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	if low, ok := nc.(*lowerConn); ok {
		return low.owner
	}
	return nil
}

// readSpace is how much is read at one time.
const readSpace = 4096

// newConn is a connection of l. Without config there is no TLS.
func newConn(l *Listener, nc net.Conn, config *tls.Config) *Conn {
	c := &Conn{listener: l, conn: nc}
	c.low = &lowerConn{Conn: nonblock.Conn(nc), owner: c}
	c.Upper = c.low
	if config != nil {
		c.low.ahead = true
		c.tls = tls.Server(c.low, config)
		c.Upper = c.tls
		c.Out.low = c.low
	}
	c.Out.init(c.Upper, &l.Seat, c.Abort)
	c.last.Store(service.Now())
	return c
}

// run serves the connection until it ends or rests.
func (c *Conn) run() {
	if c.handshake() {
		c.serve()
	} else {
		c.over()
	}
}

// serve serves what comes until the connection ends or rests.
func (c *Conn) serve() {
	c.protocol.Serve()
	c.Release()
	if c.goToRest() {
		return
	}
	<-c.inflight.Drained()
	c.Out.complete()
	c.over()
}

// over closes the connection.
func (c *Conn) over() {
	if !c.hijacked.Load() {
		c.close()
	}
	c.Out.end()
	c.listener.leave(c)
}

// Service is the server of the connection, for its limits and times. It may be another one at the next call.
func (c *Conn) Service() *service.Service { return c.listener.Now() }

// Serving is the server for the next query. It is held until Release, or the next call.
func (c *Conn) Serving() *service.Service { return c.Hold(&c.listener.Seat) }

// Begin counts a query of the connection that s serves, until End.
func (c *Conn) Begin(s *service.Service) {
	c.Occupy()
	s.Inflight.Add()
}

// End ends what Begin began.
func (c *Conn) End(s *service.Service) {
	s.Inflight.Done()
	c.Vacate()
}

// Occupy counts a query of the connection, until Vacate, of which its server knows by Seat.Enter.
func (c *Conn) Occupy() { c.inflight.Add() }

// Vacate ends what Occupy began.
func (c *Conn) Vacate() {
	c.last.Store(service.Now())
	c.inflight.Done()
	c.answered()
}

// Busy reports whether a query of the connection is in flight.
func (c *Conn) Busy() bool { return c.inflight.Busy() }

// Answered is closed when no query of the connection is in flight. No more may begin.
func (c *Conn) Answered() <-chan struct{} { return c.inflight.Drained() }

// Touch notes that a query came at that time, or could come from then on.
func (c *Conn) Touch(at time.Time) { c.last.Store(service.At(at)) }

// Scratch implements exec.Source: there is no memory for a query.
func (c *Conn) Scratch() *exec.Waiting { return nil }

// Stopping reports whether the server stops, or the connection has given way to another: what has come is served, and
// no more is waited for.
func (c *Conn) Stopping() bool { return c.Evicted() || c.listener.stopping.Load() }

// Evicted reports whether the connection has given way to another.
func (c *Conn) Evicted() bool { return c.evicted.Load() != nil }

// RemoteAddr is the client's address, also by way of a proxy; LocalAddr, the one that it connected to.
func (c *Conn) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }
func (c *Conn) LocalAddr() net.Addr  { return c.conn.LocalAddr() }

// Hijack leaves the connection to the caller: it is not closed.
func (c *Conn) Hijack() { c.hijacked.Store(true) }

// Hijacked reports whether it was left to somebody.
func (c *Conn) Hijacked() bool { return c.hijacked.Load() }

// Abort closes the connection at once. Any goroutine may call it.
func (c *Conn) Abort() {
	c.conn.Close()
	c.wake()
}

// Closed has f called when somebody closes Upper.
func (c *Conn) Closed(f func()) { c.low.closed = f }

// IdleSince and Evict implement Evictable.
func (c *Conn) IdleSince() (int64, bool) { return c.last.Load(), !c.inflight.Busy() }
func (c *Conn) Evict(now bool) {
	if at := time.Now(); now || !c.evicted.CompareAndSwap(nil, &at) {
		c.Abort()
		return
	}
	c.protocol.Drain()
}

// identify finds out who the client is, if a proxy tells.
func (c *Conn) identify() bool {
	p, ok := c.conn.(*proxyConn)
	if !ok {
		return true
	}
	s := c.Service()
	if s.Handshake > 0 {
		c.conn.SetReadDeadline(time.Now().Add(s.Handshake))
	}
	if c.Stopping() { // Drain may have been before us
		c.conn.SetReadDeadline(time.Now().Add(service.DrainTime))
	}
	err := p.header()
	c.late(s, err)
	c.conn.SetReadDeadline(time.Time{})
	if p.remote != nil {
		c.slot.move(p.remote)
	}
	return err == nil
}

// ReadIn gives the next read that waits so long, from its begin.
func (c *Conn) ReadIn(d time.Duration) { c.low.deadline = d }

// QuickAck has the next read that waits acknowledge what has come. It is for the middle of something: a client may hold
// the rest back until then. See nonblock.QuickAck.
func (c *Conn) QuickAck() { c.low.quickAck(true) }

// QuickAcks says whether all reads that wait do that, for whoever has others read. Any goroutine may call it.
func (c *Conn) QuickAcks(on bool) { nonblock.QuickAck(c.low.Conn, on) }

// IdleLeft is how long to wait on for the next query of a client that may be idle for so long: that time begins
// when its last query has been answered.
func (c *Conn) IdleLeft(idle time.Duration) time.Duration {
	if c.inflight.Busy() {
		return idle
	}
	return idle - time.Duration(service.Now()-c.last.Load())
}

const (
	// lingerTime is how long a connection is read on when we have closed our half of it. What is left unread would
	// have the system reset the connection, and with it replies that are on their way.
	lingerTime  = 250 * time.Millisecond
	lingerSpace = 1 << 20 // octets, at most
)

// Linger has the connection read on for a moment when it ends, for a last word to a client that may still be sending.
func (c *Conn) Linger() { c.lingers = true }

// HangUp writes what has been added and closes the connection, though queries are at work. They keep its place, and
// what they answer is not written: an error of that would close it at once, without its lingering.
func (c *Conn) HangUp() {
	c.Out.complete()
	c.Out.end()
	c.close()
}

// close tells the client that no more comes, where there is TLS, and closes the connection. When the server stops,
// the client may just have sent another query: it is read on for a moment.
func (c *Conn) close() {
	if c.tls != nil {
		c.conn.SetWriteDeadline(time.Now().Add(service.DrainTime))
		c.tls.CloseWrite()
	}
	if (c.lingers || c.Stopping()) && c.low.CloseWrite() == nil {
		c.linger()
	}
	c.conn.Close()
}

// linger reads the connection on for lingerTime. What is answered meanwhile may set another deadline: see answered.
func (c *Conn) linger() {
	from, end := io.LimitReader(c.conn, lingerSpace), time.Now().Add(lingerTime)
	for err := os.ErrDeadlineExceeded; errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(end); {
		c.conn.SetReadDeadline(end)
		_, err = io.Copy(io.Discard, from)
	}
}
