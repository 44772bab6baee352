package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// loop is the reader of one socket. One goroutine at a time leads it; see exec.Lead.
type loop struct {
	*Transport
	sock batchSocket
	wire *eventloop.Loop
	queries
	reply wire.Reply
	until time.Time     // to go on reading, when draining
	held  []heldMessage // of the batch, those that are served when it is over, without workers
	next  int           // of them
	lead  exec.Lead
	over  bool   // no more is read
	ended func() // called then

	inflight service.Inflight

	sender, client, local netip.AddrPort // of the packet that was taken last; a proxy may send for a client
}

const readErrorPause = time.Millisecond

// begin opens the loop for plugins, before it is first led.
func (l *loop) begin() {
	l.wire = eventloop.New()
	l.queries.init(l.lead.Crowded)
	if l.takesWire() {
		l.sock.watchUpstreams(l.wire)
	}
}

// run leads the loop until it ends, or another goroutine leads it.
func (l *loop) run() {
	for l.serveHeld() {
		if l.over {
			l.end()
			return
		}
		l.over = !l.step()
	}
}

// end closes the loop for plugins. Its socket stays open for replies to queries in flight; see Transport.Stop.
func (l *loop) end() {
	if l.takesWire() {
		l.sock.endUpstreams()
	}
	l.sock.readNoMore()
	l.wire.Close()
	l.ended()
}

// step reads a batch and serves it, but for the messages that it holds. It reports false if there is nothing more
// to read.
func (l *loop) step() (more bool) {
	stopping := l.stopping.Load()
	if stopping && l.until.IsZero() {
		l.until = time.Now().Add(service.DrainTime) // after that, a queue that is filled again and again is left
	}
	n, err := l.sock.receive(!stopping)
	switch {
	case n > 0:
		l.batch(n)
	case errors.Is(err, net.ErrClosed), stopping && err == nil:
		return false
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		if l.troubled.May() {
			log.Warningf("Queries to %s wait until they can be read: %v", l.service.Label, err)
		}
		time.Sleep(readErrorPause) // an error of the socket, such as no buffers: it may pass
	}
	return !stopping || !time.Now().After(l.until)
}

// batch serves n packets in the wire lane, or sees to it that they are served.
func (l *loop) batch(n int) {
	began := time.Now()
	handed := 0
	l.wire.Enter()
	if l.takesWire() {
		l.queries.begin(l.service, n, l.Proxy == nil)
	}
	for i := range n {
		packet, ok := l.take(i, began)
		if !ok {
			continue
		}
		q, out := l.serve(i, packet, began)
		switch {
		case out == wire.Done:
		// Not at once: the wire lane's queries behind it in the batch go first.
		case out == wire.Unpack && l.inline.Open():
			l.hold(i, packet)
		default:
			exec.LaterOrDrop(l.source(i), l.service, packet, q, out)
			if out != wire.Park {
				handed++
			}
		}
	}
	// Everything is counted before replies go out: who has a reply finds it counted.
	l.wire.Done(time.Since(began))
	l.wire.Leave()
	l.sock.send()
	l.sock.served(n, handed, began)
}

// serve serves packet i in the wire lane, if it can be.
func (l *loop) serve(i int, packet []byte, now time.Time) (q *wire.Query, out wire.Outcome) {
	if !l.takesWire() {
		return &l.ring[0].Query, wire.Unpack
	}
	q, proper := l.query(i, packet, l.sock)
	if !proper {
		return q, wire.Unpack
	}
	q.Client, q.Local = l.client, l.local
	q.Arrival = now
	q.SetLoop(l.wire)
	l.reply.Reset(l.sock.space())
	// The reply is made where it is sent from.
	b, out := l.service.ServeWire(&l.reply, q)
	if b != nil {
		l.sock.answer(i, b)
	}
	return q, out
}

// take is packet i without the PROXY header that it may have, and notes whose it is. It reports false if the packet
// is to be dropped.
func (l *loop) take(i int, now time.Time) (packet []byte, ok bool) {
	packet = l.sock.packet(i)
	l.sender, l.local = l.sock.peer(i)
	l.client = l.sender
	if l.Proxy == nil {
		return packet, true
	}
	packet, l.client, ok = l.Proxy.Open(packet, l.sender, now)
	return packet, ok
}

// path is the way back to the sender of packet i, which was taken last.
func (l *loop) path(i int, s *pathScratch) returnPath {
	p := l.sock.path(i, s)
	if l.client != l.sender {
		p = &proxiedPath{p, net.UDPAddrFromAddrPort(l.client)}
	}
	return p
}
