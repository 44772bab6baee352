package conn

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// restAfter is how long a connection is idle before it rests. To rest and to be woken costs several times what the
// query does that ends it (some 200 us of all processors on a machine with two): one that is asked more often keeps its
// goroutine.
const restAfter = 500 * time.Millisecond

// rest is what a connection needs to go without a goroutine and without buffers while its client asks nothing.
//
//	Protocol.Serve ──Rest, return──▶ rests, known to a poller
//	       ▲                           │
//	       └──────────── wake ─────────┘  something has come, or the time is over, or somebody ends the connection
type rest struct {
	wanted time.Duration // what the protocol asked for, 0 if it goes on; of its goroutine

	mu     sync.Mutex
	rests  bool        // guarded by mu, as all below
	timer  *time.Timer // wakes it
	number uint64      // in the poller
	known  bool        // its descriptor is in the poller
}

// MayRest reports whether the connection can rest, on this system, and now.
func (c *Conn) MayRest() bool {
	_, ok := lowest(c.conn).(syscall.Conn)
	return ok && resting() != nil && !c.Stopping()
}

// ReadAwake is ReadIn for a connection that rests when it is idle: the next read waits no longer than until then.
func (c *Conn) ReadAwake(d time.Duration) {
	if c.MayRest() {
		d = min(d, restAfter)
	}
	c.ReadIn(d)
}

// lowest is the connection of the system below nc.
func lowest(nc net.Conn) net.Conn {
	if p, ok := nc.(*proxyConn); ok {
		return p.Conn
	}
	return nc
}

// Rest has the connection rest when the protocol returns from Serve: Serve is called again when something has come,
// or after d. All that has come must be served, and no query be in flight. See MayRest.
func (c *Conn) Rest(d time.Duration) { c.rest.wanted = max(d, 1) }

// goToRest gives the connection away, if its protocol has asked for that. The caller does not touch it any more then.
func (c *Conn) goToRest() bool {
	d := c.rest.wanted
	if d == 0 {
		return false
	}
	c.rest.wanted = 0
	c.low.dropBuffer()
	c.Out.dropBuffers()
	c.rest.mu.Lock()
	c.rest.rests = true
	if c.rest.timer == nil {
		c.rest.timer = time.AfterFunc(d, c.wake)
	} else {
		c.rest.timer.Reset(d)
	}
	watched := resting().add(c)
	c.rest.mu.Unlock()
	if !watched || c.Stopping() { // who drained it before found nothing to wake
		c.wake()
	}
	return true
}

// wake has a connection that rests served on. Any goroutine may call it, at any time.
func (c *Conn) wake() {
	c.rest.mu.Lock()
	defer c.rest.mu.Unlock()
	if c.rest.rests {
		c.rest.rests = false
		c.rest.timer.Stop()
		resting().remove(c)
		go c.serve()
	}
}

// readBuffers are those of connections that read ahead.
var readBuffers = sync.Pool{New: func() any { return new([readSpace]byte) }}

// dropBuffer gives the buffer away, if nothing is in it.
func (l *lowerConn) dropBuffer() {
	if l.buf != nil && l.r == l.w {
		readBuffers.Put(l.buf)
		l.buf = nil
	}
}

// dropBuffers gives buffers away in which nothing is.
func (w *Writer) dropBuffers() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing || len(w.pending) > 0 {
		return
	}
	w.drop(w.pending)
	w.drop(w.spare)
	w.pending, w.spare = nil, nil
	if w.low != nil {
		w.low.held = nil // of what was written last
	}
}
