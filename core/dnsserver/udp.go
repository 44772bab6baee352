package dnsserver

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/proxyproto"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// gather says whether one loop serves an address while it keeps up, where the system has means for that.
var gather = true

// ListenPacket opens the UDP socket.
func (s *Server) ListenPacket() (net.PacketConn, error) {
	return reuseport.ListenPacket("udp", strings.TrimPrefix(s.Addr, transport.DNS+"://"))
}

// ServePacket serves queries that come on p until the server is stopped; then it closes p. If p is a plain
// UDP socket that nobody wraps, further sockets at its address are opened, so that there is one for each core.
func (s *Server) ServePacket(p net.PacketConn) error {
	u := &udpTransport{server: s, done: make(chan struct{})}
	for _, cfg := range s.configs {
		if cfg.UDPDecorateWriterFunc != nil {
			u.decorate = cfg.UDPDecorateWriterFunc(s)
		}
	}
	udp, plain := p.(*net.UDPConn)
	if plain && u.decorate == nil {
		u.proxy = s.proxyPackets(p)
		u.open(udp)
	}
	if len(u.sockets) == 0 {
		u.proxy = nil
		u.sockets = []batchSocket{newPortableSocket(s.wrapPacket(p))}
	}
	s.attempt.hasSockets()
	if !s.start(u) {
		u.passOn()
		u.close()
		return nil
	}
	u.serve()
	return nil
}

// batchSocket is a UDP socket that is read and written in batches, by one goroutine.
type batchSocket interface {
	// receive waits for packets and returns how many came; they stay until the next call. Without wait it
	// returns 0 when none is queued.
	receive(wait bool) (int, error)
	// packet is packet i of the batch.
	packet(i int) []byte
	// peer is where packet i came from and which of our addresses it was sent to.
	peer(i int) (client, local netip.AddrPort)
	// space is a buffer for the next reply, from its begin to its capacity.
	space() []byte
	// answer puts b into the batch that goes out, as the reply to packet i; send sends that batch.
	answer(i int, b []byte)
	send()
	// back is the way back to the sender of packet i, for a reply that comes later. Any goroutine may use it. It may lie in room.
	back(i int, room *backRoom) back
	// handed tells that n packets of the batch went to workers.
	handed(n int)
	// collect makes replies that are written by anybody wait until sendCollected.
	collect()
	sendCollected()
	// readOthers has receive read what is watched in lane, too, until that is ended by endOthers.
	readOthers(lane *wire.Lane)
	endOthers()
	// wake makes a receive that waits return. Any goroutine may call it.
	wake()
	close() error
}

// back is where a datagram came from, and so where its reply goes.
type back interface {
	// remote and local may lie in room.
	remote(room *wire.AddrRoom) net.Addr
	local(room *wire.AddrRoom) net.Addr
	// write sends b, and may wait until the socket takes it.
	write(b []byte) error
	// post sends b when the batch of lane is over, and reports whether it can do that; if not, write does it. b is not kept.
	post(b []byte, lane *wire.Lane) bool
}

// udpTransport serves the UDP sockets of one address: one reader each, which serves what does not wait, and
// the workers of the process for all else.
type udpTransport struct {
	server   *Server
	sockets  []batchSocket
	decorate dns.DecorateWriter
	proxy    *proxyproto.PacketConn // reads PROXY headers; nil if there are none
	loops    []*udpLoop

	stopping atomic.Bool
	done     chan struct{} // closed when no socket is read any more
	handed   *extraSockets // nil if there is but one socket
}

func (u *udpTransport) serve() {
	var led sync.WaitGroup
	for _, sock := range u.sockets {
		u.loops = append(u.loops, &udpLoop{udpTransport: u, sock: sock, ended: led.Done})
	}
	led.Add(len(u.loops))
	for _, l := range u.loops {
		l.begin()
		go l.lead()
	}
	led.Wait()
	close(u.done)
}

// passOn waits until a server that takes the place of this one has the sockets that it will go on reading.
func (u *udpTransport) passOn() {
	if u.handed != nil {
		u.server.attempt.awaitNext()
	}
}

// close closes all sockets.
func (u *udpTransport) close() {
	for _, sock := range u.sockets {
		sock.close()
	}
	u.handed.giveUp()
}

// stop lets the loops take what is queued, waits for the queries in flight, and closes the sockets.
func (u *udpTransport) stop(ctx context.Context) error {
	u.passOn()
	u.stopping.Store(true)
	for _, sock := range u.sockets {
		sock.wake()
	}
	defer u.close()
	<-u.done
	for _, l := range u.loops {
		select {
		case <-l.inflight.drained():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// udpLoop is the reader of one socket. One goroutine at a time leads it.
type udpLoop struct {
	*udpTransport
	sock  batchSocket
	lane  *wire.Lane
	query wire.Query
	reply wire.Reply
	until time.Time     // to go on reading, when draining
	held  []heldMessage // of the batch, those that are served when it is over, without workers
	next  int           // of them
	turn  turn
	over  bool   // no more is read
	ended func() // called then

	inflight inflight

	sender, client, local netip.AddrPort // of the packet that was taken last; a proxy may send for a client
}

const (
	drainTime      = 50 * time.Millisecond // a queue that is filled again and again is left to itself after that
	readErrorPause = time.Millisecond
)

func (l *udpLoop) begin() {
	l.lane = wire.NewLane()
	l.query.Plain = true
	if l.server.wire {
		l.sock.readOthers(l.lane)
	}
}

// lead runs the loop until it ends, or another goroutine leads it.
func (l *udpLoop) lead() {
	for l.serveHeld() {
		if l.over {
			l.end()
			return
		}
		l.over = !l.step()
	}
}

func (l *udpLoop) end() {
	theRelief.dismiss(&l.turn)
	if l.server.wire {
		l.sock.endOthers()
	}
	l.lane.Close()
	l.ended()
}

// step reads a batch and serves it, but for the messages that it holds. It reports false if there is nothing more to read.
func (l *udpLoop) step() (more bool) {
	stopping := l.stopping.Load()
	if stopping && l.until.IsZero() {
		l.until = time.Now().Add(drainTime)
	}
	n, err := l.sock.receive(!stopping)
	switch {
	case n > 0:
		l.batch(n)
	case errors.Is(err, net.ErrClosed), stopping && err == nil:
		return false
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		time.Sleep(readErrorPause) // an error of the socket, such as no buffers: it may pass
	}
	return !stopping || !time.Now().After(l.until)
}

// batch serves n packets in the wire lane, or sees to it that they are served.
func (l *udpLoop) batch(n int) {
	began := time.Now()
	handed := 0
	l.lane.Enter()
	for i := range n {
		packet, ok := l.take(i, began)
		if !ok {
			continue
		}
		out := wire.Unpack
		if l.server.wire && l.query.Parse(packet) {
			var reply []byte
			l.query.Client, l.query.Local = l.client, l.local
			l.query.Arrival = began
			l.query.SetLane(l.lane)
			l.reply.Reset(l.sock.space())
			if reply, out = l.server.serveWire(&l.reply, &l.query); reply != nil {
				l.sock.answer(i, reply)
			}
		}
		switch {
		case out == wire.Done:
		case out == wire.Unpack && l.server.tempo.quick.Load():
			l.hold(i, packet)
		default:
			later(l.origin(i), packet, &l.query, out)
			if out != wire.Park {
				handed++
			}
		}
	}
	l.lane.Done(time.Since(began))
	l.lane.Leave()
	l.sock.send()
	if handed > 0 {
		l.sock.handed(handed)
	}
}

// take is packet i without the PROXY header that it may have, and notes whose it is. It reports false if the packet
// is to be dropped.
func (l *udpLoop) take(i int, now time.Time) (packet []byte, ok bool) {
	packet = l.sock.packet(i)
	l.sender, l.local = l.sock.peer(i)
	l.client = l.sender
	if l.proxy == nil {
		return packet, true
	}
	packet, l.client, ok = l.proxy.Open(packet, l.sender, now)
	return packet, ok
}

// back is the way back to the sender of packet i, which was taken last.
func (l *udpLoop) back(i int, room *backRoom) back {
	b := l.sock.back(i, room)
	if l.client != l.sender {
		b = &proxiedBack{b, net.UDPAddrFromAddrPort(l.client)}
	}
	return b
}

// origin is where packet i, which was taken last, came from.
func (l *udpLoop) origin(i int) *udpOrigin {
	o := udpOrigins.Get().(*udpOrigin)
	o.udpLoop, o.kept = l, false
	o.back = l.back(i, &o.backRoom)
	return o
}

// udpOrigin is where one datagram came from.
type udpOrigin struct {
	*udpLoop
	back     back
	backRoom backRoom // of back
	kept     bool     // the message lane has seen back: a handler may keep it
	waiting  waitingQuery
}

var udpOrigins = sync.Pool{New: func() any { return new(udpOrigin) }}

func (o *udpOrigin) begin()              { o.inflight.add() }
func (o *udpOrigin) room() *waitingQuery { return &o.waiting }

// end is the last that o is asked; unless it is kept it is used again.
func (o *udpOrigin) end() {
	l := o.udpLoop
	if !o.kept {
		o.udpLoop, o.back = nil, nil
		udpOrigins.Put(o)
	}
	l.inflight.done()
}

func (o *udpOrigin) reply(b []byte, _ bool) { o.back.write(b) }

func (o *udpOrigin) replyIn(lane *wire.Lane, b []byte) {
	if !o.back.post(b, lane) {
		o.back.write(b)
	}
}

// serveMessage serves a query on a worker.
func (o *udpOrigin) serveMessage(packet []byte) {
	o.kept = true
	m := &udpMessage{back: o.back}
	m.init(o.udpTransport)
	o.server.serveTimed(context.Background(), &m.responder, packet)
}
