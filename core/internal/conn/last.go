package conn

import (
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// A client does not know that the server stops. What it sends while its connection is closed is lost to it, until it
// asks somebody else. So a connection is closed in a moment in which all is answered and nothing comes. One that gives
// way to another ends in the same way, as if its server stopped:
//
//	stop ──▶ read on: service.DrainTime, and as long behind each query ──▶ what is in flight ends
//	         readTime at most                                                   └──▶ last looks ──▶ close
//
// A client of TCP is not told that the server stops (Conn.Untold), and asks on while it waits for an answer. So it is
// read on as long as one is in flight, until a moment in which none is.

const (
	// leastTime and lastTime bound readTime.
	leastTime, lastTime = lastTime / 4, time.Second
	// waitsTime is how long one is read on, of a client that cannot be told, of which some query waits at any time.
	waitsTime = 1500 * time.Millisecond
	// lookTime is how long a last look waits for what may just come.
	lookTime = 5 * time.Millisecond
	// lastLooks is how often is looked for what has come while the queries before it were answered.
	lastLooks = 2
)

// setReadDeadline gives the client time for its next query: as long as it may be idle, or while the server is being
// stopped, as long as what it sent before may have been on its way.
func (c *Conn) setReadDeadline(timeout time.Duration) {
	if !c.Stopping() {
		c.conn.SetReadDeadline(time.Now().Add(timeout))
		if !c.Stopping() {
			return // else Stop may have set its deadline before us
		}
	}
	for {
		waits := c.waits()
		c.conn.SetReadDeadline(c.readUntil())
		if !waits || c.waits() {
			return // else answered may have set its deadline before us
		}
	}
}

// waits reports whether the connection is read on, as a query of it is in flight.
func (c *Conn) waits() bool { return c.Untold && c.inflight.Busy() }

// answered has the reader of a connection that is about to end look whether it is to read on, when the last query that
// it was read on for is over.
func (c *Conn) answered() {
	if c.Untold && c.Stopping() && !c.inflight.Busy() && !c.Hijacked() {
		c.conn.SetReadDeadline(c.quietUntil())
	}
}

// stopped is when the server began to stop, or the connection to give way.
func (c *Conn) stopped() time.Time {
	if at := c.evicted.Load(); at != nil {
		return *at
	}
	return c.listener.stopped
}

// readUntil is how long queries are taken from the client while the server is being stopped.
func (c *Conn) readUntil() time.Time {
	if !c.Look.IsZero() {
		return c.Look
	}
	return c.quietUntil()
}

// quietUntil is how long that is before the last looks. It gets later as long as there are queries.
func (c *Conn) quietUntil() time.Time {
	stopped := c.stopped()
	if c.waits() {
		return stopped.Add(waitsTime)
	}
	until := stopped.Add(service.DrainTime)
	if fresh := c.ready.Add(service.DrainTime); until.Before(fresh) {
		until = fresh
	}
	quiet := service.DrainTime // what is left of it
	if !c.inflight.Busy() {
		quiet -= time.Duration(service.Now() - c.last.Load())
	}
	again := time.Now().Add(quiet)
	if latest := stopped.Add(c.readTime()); latest.Before(again) {
		again = latest
	}
	if until.Before(again) {
		until = again
	}
	return until
}

// readTime is how long a connection is read on that is asked again and again while the server stops: for each client
// another time. They connect again at once, and the handshakes of all at one time would hold up what the others ask.
func (c *Conn) readTime() time.Duration {
	const parts = 64
	return leastTime + (lastTime-leastTime)*time.Duration(wire.PeerOf(c.RemoteAddr(), nil).Client.Port()%parts)/(parts-1)
}

// ReadsOn reports whether a read that has ended for its deadline is to be tried again: the server does not stop, or
// there has been a query meanwhile.
func (c *Conn) ReadsOn() bool { return !c.Stopping() || time.Now().Before(c.readUntil()) }

// LastLook waits until what is in flight is answered, and has the reader read what has come meanwhile; or that goes on,
// as what it has read waits. It reports false when that has been done often enough, or the server does not stop.
func (c *Conn) LastLook() bool {
	if !c.Stopping() || c.looks == lastLooks {
		return false
	}
	if c.waits() && time.Since(c.stopped()) < waitsTime {
		c.Look, c.looks = time.Time{}, 0
		return true
	}
	c.looks++
	<-c.Answered()
	c.Look = time.Now().Add(lookTime)
	return true
}

// LoseLeast hangs up on a client that asks on though its server has stopped, of which n queries were read in the last
// look, if fewer of them are in flight. While those were waited for, as many as n would come, and be lost.
func (c *Conn) LoseLeast(n int) {
	if c.looks == lastLooks && c.inflight.Count() < int64(n) {
		c.HangUp()
	}
}
