// Package tcp speaks DNS over TCP and TLS (RFC 1035 §4.2.2, RFC 7766, RFC 7858): frames of a message with its
// length before it.
//
//	frames ──next──▶ query ──▶ wire lane ──Done──▶ Out
//	                             └── waits: a worker, or parked ──▶ Out, in any order
//
// The goroutine of a connection reads queries and answers them in the wire lane. A query is read only when fewer than
// Limits.Pipeline of its connection wait. A connection that is idle rests: it has neither a goroutine nor buffers until
// something comes (conn.Conn.Rest). Without TLS it begins so, and has no goroutine before a query comes that the wire
// lane does not answer at once (light.go). Start at protocol.Serve.
package tcp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/updates"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// protocol is one connection.
type protocol struct {
	*conn.Conn
	r       *bufio.Reader // of the messages; nil while the connection rests
	peer    wire.Peer
	slots   chan struct{} // one for each query that waits; made when the first does
	updates updates.Order // of those that wait
	batch   exec.Batch
	queries int         // that were read
	midway  bool        // nothing more can be read: a query was not read to its end
	from    *conn.Light // what it was before it had its goroutine, until that is at work; nil for nothing
}

// readSpace is how much of the queries of a connection is read ahead.
const readSpace = 4096

// readers are those of connections that do not rest.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readSpace) }}

// Handler speaks DNS on connections.
var Handler = conn.Handler{New: newProtocol, Turn: serveLight, Resume: resume}

func newProtocol(c *conn.Conn) conn.Protocol {
	c.Out.Cut = frameEnd
	return &protocol{Conn: c}
}

// frameEnd is where the first message of b ends.
func frameEnd(b []byte) int { return 2 + int(binary.BigEndian.Uint16(b)) }

// Drain implements conn.Protocol.
func (p *protocol) Drain() { p.DrainRead() }

// BeforeWait implements conn.Protocol.
func (p *protocol) BeforeWait() {
	p.batch.Leave()
	p.Release()
	p.Out.Flush()
	log.Idle()
}

// Serve reads and serves queries until no more come, or the connection rests. All that has come is served before
// replies are written, in one piece.
func (p *protocol) Serve() {
	first := p.peer.Limit == 0
	if first {
		p.Untold = true
		p.peer = wire.PeerOf(p.RemoteAddr(), p.LocalAddr())
		p.peer.Proto, p.peer.Limit, p.peer.Plain = wire.TCP, wire.MaxMessage, p.TLS == nil
	}
	p.r = readers.Get().(*bufio.Reader)
	p.r.Reset(p.Upper)
	if p.from != nil {
		p.goOn()
	}
	more, n := p.readAll(first), -1
	p.BeforeWait()
	for ; more && (n != p.queries || p.Look.IsZero()) && p.LastLook(); p.BeforeWait() {
		n = p.queries
		more = p.readAll(false)
	}
	if more {
		p.LoseLeast(p.queries - n)
	}
	p.r.Reset(nil)
	readers.Put(p.r)
	p.r = nil
}

// readAll is Serve without its ends. It reports whether more may come: nothing has for long enough.
func (p *protocol) readAll(first bool) (more bool) {
	left := p.idleTime()
	if !first {
		left = max(p.IdleLeft(left), time.Millisecond) // at its end something may just have come
	}
	for p.mayAsk() {
		packet, err := p.next(left)
		if err == errIdle {
			return false
		}
		if err != nil {
			p.ended(err)
			return errors.Is(err, os.ErrDeadlineExceeded) && !p.midway
		}
		p.queries++
		p.answer(packet)
		left = p.Service().Idle
	}
	return false
}

// idleTime is how long the client may wait with its next query.
func (p *protocol) idleTime() time.Duration {
	if p.queries == 0 {
		return p.Service().Read
	}
	return p.Service().Idle
}

// mayAsk reports whether the client may send one more query. Those that have come are not answered, either, when
// replies cannot be written any more.
func (p *protocol) mayAsk() bool {
	s := p.Service()
	if p.queries == s.Queries {
		s.Limited("queries")
		return false
	}
	return mayAsk(s, p.queries) && !p.Hijacked() && !p.Out.Failed()
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
	if p.slots == nil {
		p.slots = make(chan struct{}, max(1, p.Service().Pipeline))
	}
	select {
	case p.slots <- struct{}{}:
	default:
		p.Flush()
		p.slots <- struct{}{}
	}
	if out == wire.Unpack && len(packet) >= wire.HeaderLen && wire.Header(packet).Opcode == dns.OpcodeUpdate {
		exec.Later(&update{p, p.updates.Begin()}, s, packet, q, out)
		return
	}
	exec.Later(p, s, packet, q, out)
}

// update is where an UPDATE came from, which has a position among those of the connection. It has the methods of an
// exec.Source, and not all of a protocol's.
type update struct {
	from *protocol
	at   *updates.Position
}

func (u *update) ServeMessage(s *service.Service, packet []byte) { u.from.serve(s, packet, u.at) }
func (u *update) Reply(b []byte, mayWait bool)                   { u.from.Reply(b, mayWait) }
func (u *update) Begin(s *service.Service)                       { u.from.Begin(s) }
func (u *update) End(s *service.Service)                         { u.from.End(s) }
func (u *update) Scratch() *exec.Waiting                         { return u.from.Scratch() }
func (u *update) Flush()                                         { u.from.Flush() }

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

// Flush has what was answered go out. Queries behind it wait.
func (p *protocol) Flush() { p.Out.Flush() }

// ServeMessage implements exec.Source.
func (p *protocol) ServeMessage(s *service.Service, packet []byte) { p.serve(s, packet, nil) }

func (p *protocol) serve(s *service.Service, packet []byte, at *updates.Position) {
	w := &reply.Writer{Sink: p, Finish: s.Finish}
	w.Client = reply.Client{Network: "tcp", Remote: p.RemoteAddr(), Local: p.LocalAddr(), Limit: wire.MaxMessage, TLS: p.TLS}
	exec.ServeMessage(s, w, packet, at)
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
	n := frameEnd(head)
	b, _ := r.Peek(n)
	r.Discard(n)
	return b[2:]
}

// errIdle says that the connection rests.
var errIdle = errors.New("idle")

// next is the next query, for which the client has the time left; it is good until the next read. A connection is not
// idle while a query of it is at work.
func (p *protocol) next(left time.Duration) ([]byte, error) {
	// With the first octet of a query its time runs on, whatever comes: who sends octet by octet gets no more.
	begun := false
	for end := int64(0); !p.hasFrame(); {
		if begun {
			p.ReadIn(left)
		} else {
			end = service.Now() + int64(left)
			p.ReadAwake(left)
		}
		head, err := p.r.Peek(2)
		now := service.Now()
		switch {
		case err == nil:
			p.ReadIn(max(time.Duration(end-now), time.Millisecond)) // for the rest of it
			return p.rest(int(binary.BigEndian.Uint16(head)))
		case !errors.Is(err, os.ErrDeadlineExceeded), !p.ReadsOn():
			return nil, err
		case len(head) > 0:
			begun, left = true, time.Duration(end-now)
		default:
			left = p.IdleLeft(p.idleTime())
		}
		if left <= 0 {
			return nil, err
		}
		// The reply to a query that is at work needs no reader, but its end has to be known here, for the idle time.
		if !begun && p.MayRest() && !p.Busy() {
			p.Rest(left)
			return nil, errIdle
		}
	}
	return frame(p.r), nil
}

// rest waits for all of a query of n octets, whose length has come.
func (p *protocol) rest(n int) ([]byte, error) {
	if p.Service().TooLong(n) {
		return nil, service.ErrLong
	}
	p.QuickAck()
	if 2+n > readSpace {
		p.r.Discard(2)
		b, err := p.Service().ReadQuery(p.r, n)
		p.midway = err != nil
		return b, err
	}
	if _, err := p.r.Peek(2 + n); err != nil {
		return nil, err
	}
	return frame(p.r), nil
}
