package conn

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/nonblock"

	"golang.org/x/sys/unix"
)

// light is what the system needs of a Light. Its reader uses it, but for what others may call.
type light struct {
	fd      int
	handler Handler
	slot    *Slot
	last    atomic.Int64 // when it had a query last; see Evictable

	reader     *reader // that it is known to, nil at first
	index      int32   // there
	queue      *queue  // there, in which it waits
	prev, next *Light

	mu     sync.Mutex
	closed bool  // fd is closed, or that of conn; guarded by mu, as conn
	conn   *Conn // what it has become
}

// IdleSince implements Evictable.
func (c *Light) IdleSince() (int64, bool) { return c.last.Load(), true }

// Evict implements Evictable: now, unless it has become a Conn, as a client over TCP cannot be told before. Any
// goroutine may call it. The reader finds the end, and closes the descriptor: nobody else may, as it would be given
// away while the reader uses it.
func (c *Light) Evict(now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.conn != nil:
		c.conn.Evict(now)
	case !c.closed:
		unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
}

// idleTime is how long the client may wait with its next query.
func (c *Light) idleTime(s *service.Service) time.Duration {
	if c.Queries == 0 {
		return s.Read
	}
	return s.Idle
}

// close ends the connection.
func (c *Light) close() {
	if c.reader != nil {
		c.reader.forget(c, false)
	}
	c.mu.Lock()
	c.closed = true
	nonblock.Close(c.fd)
	c.mu.Unlock()
	c.slot.Leave()
}

// toConn makes it a Conn, with a goroutine. in is what has come and was not served, in a buffer that is the Conn's from
// now on, nil for none; out is what its client did not take.
func (c *Light) toConn(l *Listener, buf *[readSpace]byte, from, to int, out []byte) {
	if c.reader != nil {
		c.reader.forget(c, true)
	}
	nc := nonblock.Adopt(c.fd, net.TCPAddrFromAddrPort(c.Peer.Local), net.TCPAddrFromAddrPort(c.Peer.Client))
	n := newConn(l, nc, nil)
	n.low.buf, n.low.r, n.low.w = buf, from, to
	n.slot = c.slot
	n.slot.become(n)
	n.protocol = c.handler.Resume(n, c)
	if len(out) > 0 {
		n.Out.Add(nil, out)
	}
	c.mu.Lock()
	c.closed, c.conn = true, n
	c.mu.Unlock()
	l.enter(n)
	l.run(n)
}

// queue is connections of a reader, the one first that has been idle for longest: all of a queue have the same time.
// Its reader's lock is held.
type queue struct{ first, last *Light }

func (q *queue) push(c *Light) {
	c.queue, c.prev, c.next = q, q.last, nil
	if q.last != nil {
		q.last.next = c
	} else {
		q.first = c
	}
	q.last = c
}

func (q *queue) remove(c *Light) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		q.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		q.last = c.prev
	}
	c.queue, c.prev, c.next = nil, nil, nil
}
