package proxy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// streamConn is one connection of TCP or TLS, and the carrier of what is under way on it.
type streamConn struct {
	link
	pool  *streamPool
	to    *Peer      // nil if it is the upstream
	from  netip.Addr // with to
	began int64

	// Guarded by the engine's lock.
	pending  idTable
	local    net.Addr
	open     bool // dialled, and not lost
	retired  bool // takes no more queries
	silence  eventloop.Silence
	answered int   // queries
	used     int64 // when the last exchange ended
	heard    int64 // when something came in
	waits
}

func newStreamConn(e *engine, now int64) *streamConn {
	return &streamConn{link: newLink(e), pool: &e.streams, began: now, used: now}
}

// opened has what was asked during the dialling written. The time for the replies begins now.
func (c *streamConn) opened(conn net.Conn) {
	e := c.engine
	e.mu.Lock()
	now := e.now()
	c.local, c.open, c.used, c.heard = conn.LocalAddr(), true, now, now
	c.silence.Heard(now)
	for _, x := range c.pending.all() {
		x.Local = c.local
		e.schedule(x, now)
	}
	c.flush()
	e.unlock()
}

// write implements linked.
func (c *streamConn) write(conn net.Conn, p []byte) error { return writeFrames(conn, p) }

// read hands replies to their owners until an error.
func (c *streamConn) read(conn net.Conn) error {
	r := bufio.NewReaderSize(conn, 4096)
	var length [2]byte
	var buf []byte
	first := true
	for {
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint16(length[:]))
		if n > len(buf) {
			buf = make([]byte, max(n, min(2*len(buf), wire.MaxMessage), 512))
		}
		if _, err := io.ReadFull(r, buf[:n]); err != nil {
			return err
		}
		c.received(buf[:n])
		if first {
			first = false
			nonblock.QuickAck(conn, false)
		}
	}
}

// received looks at one message. What has the id of a query and is no reply to it ends that
// query: nobody but the upstream sends here, and it will send nothing else.
func (c *streamConn) received(b []byte) {
	e := c.engine
	defer e.ending.enter().Done()
	in, v := replies.Inspect(b)
	if v != replies.Proper && v != replies.OtherQuestion && len(b) >= 2 {
		in.ID = binary.BigEndian.Uint16(b)
	}
	e.mu.Lock()
	now, before := e.now(), c.heard
	c.heard = now
	x := c.pending.find(in.ID)
	if x == nil {
		v = replies.OtherID
	} else {
		if v == replies.Proper || v == replies.Bare {
			if why := x.mismatch(&in, b, v); why != replies.Proper {
				v = why
			}
		}
		if c.answered++; c.answered > 1 {
			c.pool.hasty, c.pool.oneOff, c.pool.mutes = 0, false, 0
		} else {
			c.pool.turns.most = max(c.pool.turns.most, c.pool.answering())
		}
		if now-x.sent > int64(muteWait) {
			c.pool.slow, c.pool.single = now+singleFor, 0
		}
		c.pool.turns.note(c, x, before, now)
		e.take(x, now)
	}
	c.silence.Heard(now)
	e.unlock()
	if v == replies.Bare {
		b, v = in.Completed(b, x.Query), replies.Proper
	}
	if v != replies.Proper {
		e.proxy.ignore(v, 1)
	}
	switch v {
	case replies.OtherID: // of a query that is over
	case replies.Proper:
		if e.refusedCookie(x, &in.Facts) {
			return
		}
		x.Reply, x.Facts = b, in.Facts
		e.end(x, nil)
	default:
		err := ErrMismatch
		if (v == replies.Malformed || v == replies.CutShort) && x.To != nil {
			err = ErrMalformed
		}
		e.end(x, err)
	}
}

// lost ends the connection's exchanges, or begins them anew.
func (c *streamConn) lost(err error) {
	e := c.engine
	defer e.ending.enter().Done()
	e.mu.Lock()
	now := e.now()
	byPeer := c.open && closedByPeer(err)
	c.pool.remove(c)
	others := !c.open && c.ctx.Err() == nil && refusal(err) && c.pool.refused(now)
	c.retired, c.open = true, false
	left := c.pending.all()
	for _, x := range left {
		e.take(x, now)
	}
	if byPeer && len(left) > 0 {
		c.pool.judge(c)
	}
	conn, heard := c.conn, c.heard
	e.unlock()

	for _, x := range left {
		switch {
		case others && x.retries < maxRetries:
			x.retries++
			e.askStream(x, 0)
		case byPeer && (x.reused || c.answered > 0) && x.retries < maxRetries:
			since := heard // what began since the upstream was last heard of is most likely alive
			if x.retries++; x.retries > 1 {
				since = now
			}
			e.askStream(x, since)
		case byPeer && x.reused:
			e.end(x, ErrCachedClosed)
		default:
			e.end(x, located(err, conn))
		}
	}
}

// located is err, which came from conn, with the connection's addresses.
func located(err error, conn net.Conn) error {
	var op *net.OpError
	if conn == nil || errors.As(err, &op) || !closedByPeer(err) {
		return err
	}
	return &net.OpError{Op: "read", Net: "tcp", Source: conn.LocalAddr(), Addr: conn.RemoteAddr(), Err: err}
}

// late is the error of x. A connection on which nothing came since x was sent may be dead, and takes no more queries.
func (c *streamConn) late(x *Exchange) error {
	now := c.engine.now()
	c.pool.turns.tooMany(c, x, now)
	if !c.open {
		return late("dial", "tcp", nil, c.engine.proxy.netAddr())
	}
	if c.heard <= now-int64(x.Timeout) {
		c.retired = true
	}
	return late("read", "tcp", c.local, c.conn.RemoteAddr())
}

func (c *streamConn) drop(x *Exchange, now int64) {
	c.pending.remove(x)
	c.silence.Done(x.sent, now, c.engine.usual.Patience())
	c.used = now
	if c.pending.n > 0 || !c.open && !c.retired {
		return
	}
	conf := c.engine.proxy.transport.conf.Load()
	if c.retired || now < c.pool.single || conf.aged(c.began, now) || conf.maxIdle > 0 && c.pool.idle() > conf.maxIdle {
		c.doom()
	}
}

// retire lets the connection take no more queries. It ends with the last one. mu is held.
func (c *streamConn) retire() {
	if c.retired = true; c.pending.n == 0 {
		c.doom()
	}
}

// doom takes the connection out of the pool and lets it be closed. mu is held.
func (c *streamConn) doom() {
	c.retired = true
	c.pool.remove(c)
	c.engine.doomed = append(c.engine.doomed, c)
}
