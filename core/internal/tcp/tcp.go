// Package tcp speaks DNS over TCP and TLS (RFC 1035 §4.2.2, RFC 7766, RFC 7858): frames of a message with its
// length before it.
//
//	frames ──next──▶ query ──▶ wire lane ──Done──▶ Out
//	                             └── waits: a worker, or parked ──▶ Out, in any order
//
// The goroutine of a connection reads queries and answers them in the wire lane. A query is read only when fewer than
// Limits.Pipeline of its connection wait. Start at protocol.Serve.
package tcp

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// protocol is one connection.
type protocol struct {
	*conn.Conn
	r       *bufio.Reader // of the messages
	peer    wire.Peer
	slots   chan struct{} // one for each query that waits
	batch   exec.Batch
	queries int // that were read
}

// readSpace is how much of the queries of a connection is read ahead.
const readSpace = 4096

// New speaks DNS on c.
func New(c *conn.Conn) conn.Protocol {
	return &protocol{Conn: c, r: bufio.NewReaderSize(c.Upper, readSpace), slots: make(chan struct{}, max(1, c.Service().Pipeline))}
}

// Drain implements conn.Protocol.
func (p *protocol) Drain() { p.DrainRead() }

// BeforeWait implements conn.Protocol.
func (p *protocol) BeforeWait() {
	p.batch.Leave()
	p.Release()
	p.Out.Flush()
	log.Idle()
}

// Serve reads and serves queries until no more come. All that has come is served before replies are written, in one
// piece.
func (p *protocol) Serve() {
	p.peer = wire.PeerOf(p.RemoteAddr(), p.LocalAddr())
	p.peer.Proto, p.peer.Limit, p.peer.Plain = wire.TCP, wire.MaxMessage, p.TLS == nil
	for p.mayAsk() {
		packet, err := p.next()
		if err != nil {
			p.ended(err)
			break
		}
		p.queries++
		p.answer(packet)
	}
	p.BeforeWait()
}

// mayAsk reports whether the client may send one more query.
func (p *protocol) mayAsk() bool {
	s := p.Service()
	if p.queries == s.Queries {
		s.Limited("queries")
		return false
	}
	return (s.Queries < 0 || p.queries < s.Queries) && !p.Hijacked()
}

// ended counts why the client sends no more queries, if it is for a limit.
func (p *protocol) ended(err error) {
	reason := "idle_time"
	switch {
	case errors.Is(err, service.ErrLong):
		reason = "query_bytes"
	case !errors.Is(err, os.ErrDeadlineExceeded) || p.Stopping():
		return
	case p.queries == 0 || p.r.Buffered() > 0: // it is at it, but too slowly
		reason = "read_time"
	}
	p.Service().Limited(reason)
}

// answer serves packet in the wire lane, or lets it wait.
func (p *protocol) answer(packet []byte) {
	s := p.Serving()
	if !s.Wire {
		p.wait(s, packet, nil, wire.Unpack)
		return
	}
	if p.batch.Loop == nil {
		p.batch.Enter()
		p.peer.Arrival = p.batch.Began
		p.Touch(p.batch.Began)
	}
	b, out := p.batch.Run.Serve(s, packet, p.peer, p.batch.Loop, nil)
	if out != wire.Done {
		// To wait for a worker would hold up others who want the loop; the Run still has what the query is about.
		run := p.batch.LeaveWith()
		p.wait(s, packet, &run.Query, out)
		run.Free()
		return
	}
	if b != nil && p.Out.AddFrame(b) {
		p.batch.Leave()
		p.Out.Flush()
	}
}

// wait lets a query wait, without holding up those behind it, unless too many wait already. q is nil for one in the
// message lane.
func (p *protocol) wait(s *service.Service, packet []byte, q *wire.Query, out wire.Outcome) {
	select {
	case p.slots <- struct{}{}:
	default:
		p.Out.Flush()
		p.slots <- struct{}{}
	}
	exec.Later(p, s, packet, q, out)
}

// End implements exec.Source: it frees the place of a query that has waited.
func (p *protocol) End(s *service.Service) {
	<-p.slots
	p.Conn.End(s)
}

// Reply implements exec.Source.
func (p *protocol) Reply(b []byte, mayWait bool) {
	if mayWait {
		p.Out.WriteFrame(b)
		return
	}
	p.Out.SendFrame(b)
}

// ServeMessage implements exec.Source.
func (p *protocol) ServeMessage(s *service.Service, packet []byte) {
	w := &reply.Writer{Sink: p, Finish: s.Finish}
	w.Client = reply.Client{Network: "tcp", Remote: p.RemoteAddr(), Local: p.LocalAddr(), Limit: wire.MaxMessage, TLS: p.TLS}
	exec.ServeMessage(context.Background(), s, w, packet)
}

// Send and Close implement reply.Sink.
func (p *protocol) Send(b []byte) error { return p.Out.WriteFrame(b) }
func (p *protocol) Close() error        { p.Abort(); return nil }

// hasFrame reports whether a message has come whole that is not too long.
func (p *protocol) hasFrame() bool {
	if p.r.Buffered() < 2 {
		return false
	}
	head, _ := p.r.Peek(2)
	n := int(binary.BigEndian.Uint16(head))
	return p.r.Buffered() >= 2+n && !p.Service().TooLong(n)
}

// frame is the message that has come whole. It is good until the next read.
func frame(r *bufio.Reader) []byte {
	head, _ := r.Peek(2)
	n := 2 + int(binary.BigEndian.Uint16(head))
	b, _ := r.Peek(n)
	r.Discard(n)
	return b[2:]
}

// next is the next query; it is good until the next read. A connection is not idle while a query of it is at work.
func (p *protocol) next() ([]byte, error) {
	s := p.Service()
	timeout := s.Idle
	if p.queries == 0 {
		timeout = s.Read
	}
	wait := timeout
	for !p.hasFrame() {
		p.ReadIn(wait) // for all of the query
		head, err := p.r.Peek(2)
		if err == nil {
			return p.rest(int(binary.BigEndian.Uint16(head)))
		}
		if len(head) > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || p.Stopping() {
			return nil, err
		}
		if wait = p.IdleLeft(timeout); wait <= 0 {
			return nil, err
		}
	}
	return frame(p.r), nil
}

// rest waits for all of a query of n octets, whose length has come.
func (p *protocol) rest(n int) ([]byte, error) {
	if p.Service().TooLong(n) {
		return nil, service.ErrLong
	}
	if 2+n > readSpace {
		packet := make([]byte, 2+n)
		_, err := io.ReadFull(p.r, packet)
		return packet[2:], err
	}
	if _, err := p.r.Peek(2 + n); err != nil {
		return nil, err
	}
	return frame(p.r), nil
}
