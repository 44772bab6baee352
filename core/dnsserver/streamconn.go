package dnsserver

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// streamConn is one connection of DNS over TCP or TLS (RFC 1035 §4.2.2, RFC 7766, RFC 7858). Its goroutine reads queries, and answers them in
// the wire lane; those that wait do so on the workers of the process, so that replies may go out in any order. A query is read
// only when fewer than limits.pipeline of its connection wait.
type streamConn struct {
	endpoint
	r        *bufio.Reader // of the messages
	peer     wire.Peer
	out      streamWriter
	slots    chan struct{}
	stint    stint
	queries  int // that were read
	hijacked atomic.Bool

	turn    turn
	calling bool          // handlers are called
	over    chan struct{} // closed when no more is read, if another goroutine led then; nil as long as no handler is called
}

// newPlainConn makes a connection of DNS over TCP.
func newPlainConn(t *streamTransport, conn net.Conn) transportConn {
	return newStreamConn(t, conn, nil)
}

// newTLSConn returns what makes a connection of DNS over TLS.
func newTLSConn(config *tls.Config) connKind {
	return func(t *streamTransport, conn net.Conn) transportConn { return newStreamConn(t, conn, config) }
}

func newStreamConn(t *streamTransport, conn net.Conn, config *tls.Config) *streamConn {
	c := &streamConn{slots: make(chan struct{}, max(1, t.server.limits.pipeline))}
	c.open(t, conn, config, c.idle)
	c.r = bufio.NewReaderSize(c.upper, readSpace)
	c.out.init(c.upper, t.server, c.cut)
	return c
}

func (c *streamConn) hurry() { c.conn.SetReadDeadline(time.Now().Add(drainTime)) }

func (c *streamConn) serve() {
	if c.handshake() {
		c.peer = wire.PeerOf(c.conn.RemoteAddr(), c.conn.LocalAddr())
		c.peer.Proto, c.peer.Limit, c.peer.Plain = wire.TCP, wire.MaxMessage, c.tls == nil
		c.serveAll()
	}
	if !c.hijacked.Load() {
		c.finish()
	}
	c.out.end()
}

// serveAll serves all queries of the connection, led by this goroutine or others.
func (c *streamConn) serveAll() {
	over := false
	defer func() { // a handler may have ended this goroutine
		if v := recover(); v != nil {
			panic(v) // it is to be seen at once
		}
		if !over {
			<-c.over
		}
		<-c.inflight.drained()
		c.out.complete()
	}()
	over = c.lead()
}

// idle is called when all that has come is served.
func (c *streamConn) idle() {
	c.stint.leave()
	c.endCalls()
	c.out.flush()
	log.Idle()
}

// lead reads and serves queries until no more come, or another goroutine does: then it reports false. All that has come is served before
// replies are written, in one piece.
func (c *streamConn) lead() (over bool) {
	s := c.base()
	for (s.MaxTCPQueries < 0 || c.queries < s.MaxTCPQueries) && !c.hijacked.Load() {
		first := c.queries == 0
		packet, err := c.next(first)
		if err != nil {
			c.ended(err, first)
			break
		}
		c.queries++
		if !c.answer(packet) {
			return false
		}
	}
	if c.queries == s.MaxTCPQueries {
		s.limited("queries")
	}
	c.idle()
	return true
}

// ended counts why the client sends no more queries, if it is for a limit.
func (c *streamConn) ended(err error, first bool) {
	reason := "idle_time"
	switch {
	case errors.Is(err, errLongQuery):
		reason = "query_bytes"
	case !errors.Is(err, os.ErrDeadlineExceeded) || c.transport.stopping.Load():
		return
	case first || c.r.Buffered() > 0: // it is at it, but too slowly
		reason = "read_time"
	}
	c.transport.server.limited(reason)
}

// answer serves packet in the wire lane, or in the message lane, or lets it wait. It reports false if another goroutine leads.
func (c *streamConn) answer(packet []byte) (leads bool) {
	if !c.base().wire {
		return c.message(packet)
	}
	if c.stint.lane == nil {
		c.stint.enter()
		c.peer.Arrival = c.stint.began
		c.last.Store(int64(c.stint.began.Sub(started)))
	}
	reply, out := c.stint.run.serve(c.base(), packet, c.peer, c.stint.lane, nil)
	if out != wire.Done {
		run := c.stint.leaveWith()
		if out != wire.Unpack {
			c.wait(packet, &run.query, out)
		}
		runs.Put(run)
		return out != wire.Unpack || c.message(packet)
	}
	if reply != nil && c.out.addFrame(reply) {
		c.stint.leave()
		c.out.flush()
	}
	return true
}

// wait lets a query wait, without holding up those behind it, unless too many wait already. q is nil for one in the message lane.
func (c *streamConn) wait(packet []byte, q *wire.Query, out wire.Outcome) {
	c.endCalls() // those that wait write by themselves, as this may take long
	select {
	case c.slots <- struct{}{}:
	default:
		c.out.flush()
		c.slots <- struct{}{}
	}
	laterOn(c, packet, q, out)
}

// end frees the place of a query that has waited.
func (c *streamConn) end() {
	<-c.slots
	c.endpoint.end()
}

// reply sends a reply of the wire lane.
func (c *streamConn) reply(b []byte, mayWait bool) {
	if mayWait {
		c.out.writeFrame(b)
		return
	}
	c.out.sendFrame(b)
}

// hasFrame reports whether a message has come whole that is not too long.
func (c *streamConn) hasFrame() bool {
	if c.r.Buffered() < 2 {
		return false
	}
	head, _ := c.r.Peek(2)
	n := int(binary.BigEndian.Uint16(head))
	return c.r.Buffered() >= 2+n && !c.base().tooLong(n)
}

// frame is the message that has come whole. It is good until the next read.
func frame(r *bufio.Reader) []byte {
	head, _ := r.Peek(2)
	n := 2 + int(binary.BigEndian.Uint16(head))
	b, _ := r.Peek(n)
	r.Discard(n)
	return b[2:]
}

var errLongQuery = errors.New("query is longer than the limit")

// next is the next query; it is good until the next read. A connection is not idle while a query of it is at work.
func (c *streamConn) next(first bool) ([]byte, error) {
	s := c.transport.server
	timeout := s.IdleTimeout
	if first {
		timeout = s.ReadTimeout
	}
	wait := timeout
	for !c.hasFrame() {
		c.low.deadline = wait // for all of the query
		head, err := c.r.Peek(2)
		if err == nil {
			n := int(binary.BigEndian.Uint16(head))
			if c.base().tooLong(n) {
				return nil, errLongQuery
			}
			if 2+n > readSpace {
				packet := make([]byte, 2+n)
				_, err = io.ReadFull(c.r, packet)
				return packet[2:], err
			}
			if _, err = c.r.Peek(2 + n); err != nil {
				return nil, err
			}
			break
		}
		if len(head) > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || c.transport.stopping.Load() {
			return nil, err
		}
		if wait = c.patience(timeout); wait <= 0 {
			return nil, err
		}
	}
	return frame(c.r), nil
}

// finish closes the connection. The client may have sent another query just now: if that were left unread, the system
// would reset the connection, and with it replies that are on their way.
func (c *streamConn) finish() {
	c.closeTLS()
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok && c.transport.stopping.Load() {
		half.CloseWrite()
		c.conn.SetReadDeadline(time.Now().Add(drainTime))
		io.Copy(io.Discard, io.LimitReader(c.conn, 1<<16))
	}
	c.conn.Close()
}

func (c *streamConn) send(b []byte) error { return c.out.writeFrame(b) }
func (c *streamConn) Close() error        { return c.conn.Close() }
func (c *streamConn) Hijack()             { c.hijacked.Store(true) }
