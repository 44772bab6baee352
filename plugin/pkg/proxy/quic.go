package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/quic-go/quic-go"
)

// quicPool is the QUIC connection to an upstream (RFC 9250), of which each query gets a stream. It is opened when a
// query needs it, and closes by itself when it is idle for too long. A second one is there while the first one is
// silent, which may be dead; there are more while the upstream takes too few streams on each (quicstreams.go).
type quicPool struct {
	engine *engine

	mu        sync.Mutex
	links     []*quicLink // those that take queries, the oldest first
	dialling  *quicDial   // under way; nil if none is
	shut      int64       // until when no second one is opened, as that was refused
	transport *quic.Transport
	sessions  tls.ClientSessionCache // for those whose settings have none
	tokens    quic.TokenStore
	stopped   bool
}

// quicDial is the opening of a connection, which any number of queries wait for.
type quicDial struct {
	done    chan struct{}
	link    *quicLink // both are settled when done is closed
	err     error
	waiters int // guarded by the pool's lock; they are the link's first users
}

// quicLink is one connection.
type quicLink struct {
	*quic.Conn
	began int64

	// Guarded by the pool's lock.
	users   int   // streams, and who waits for one
	heard   int64 // when a reply came
	silence eventloop.Silence
	retired bool // takes no more queries, and is closed with the last one
}

// quicHandshake is how long to hear nothing during a handshake, and half of the time that it may take.
const quicHandshake = 2 * time.Second

// Codes of RFC 9250 §4.3.
const (
	doqNoError          quic.ApplicationErrorCode = 0
	doqProtocolError    quic.ApplicationErrorCode = 2
	doqNoMore           quic.StreamErrorCode      = 0
	doqRequestCancelled quic.StreamErrorCode      = 3
)

// errQUICReply is the error of a stream whose octets are no message.
var errQUICReply = errors.New("quic: the stream ended before the reply did")

// ask asks query, whose id is 0 (RFC 9250 §4.2.1), on a stream of its own and reads the reply into buf. got is told
// when there is a stream. Connections that the upstream closed, which were open before or brought others their
// replies, cost as many tries as over TLS.
func (q *quicPool) ask(ctx context.Context, query []byte, buf *bytes.Buffer, got func(net.Addr)) error {
	for n := 0; ; {
		l, open, err := q.get(ctx)
		if err != nil {
			return err
		}
		k, s, err := q.stream(ctx, l)
		l, open = k, open || k != l
		got(l.LocalAddr())
		sent := q.sent(l)
		if err = l.failed(ctx, "open", err); err == nil {
			err = l.ask(ctx, s, query, buf)
		}
		gone := lost(err)
		heard := q.put(ctx, l, sent, err)
		if !gone || !open && !heard || n == maxRetries || ctx.Err() != nil {
			return err
		}
		if heard { // else it was one more than the upstream takes
			n++
		}
		buf.Reset()
	}
}

// get is a connection with one user more, and whether it was open before.
func (q *quicPool) get(ctx context.Context) (l *quicLink, open bool, err error) {
	q.mu.Lock()
	if q.stopped {
		q.mu.Unlock()
		return nil, false, errStopped
	}
	p := q.engine.proxy
	if l = q.choose(q.engine.now()); l != nil {
		l.users++
		q.mu.Unlock()
		p.counts.hits.get(viaQUIC).Inc()
		return l, true, nil
	}
	d := q.dialling
	if d == nil {
		d = q.begin()
		p.counts.miss(viaQUIC)
	}
	d.waiters++
	q.mu.Unlock()
	select {
	case <-d.done:
		if d.err == nil {
			return d.link, false, nil
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		if l = q.choose(q.engine.now()); l == nil {
			return nil, false, d.err
		}
		l.users++
		return l, true, nil
	case <-ctx.Done():
		q.leave(d)
		return nil, false, context.Cause(ctx)
	}
}

// begin begins to open a connection. q.mu is held.
func (q *quicPool) begin() *quicDial {
	d := &quicDial{done: make(chan struct{})}
	q.dialling = d
	q.engine.running.Go(func() { q.dial(d) })
	return d
}

// choose is the connection for one more query, nil if one should be opened. q.mu is held.
func (q *quicPool) choose(now int64) (l *quicLink) {
	conf, patience := q.engine.proxy.transport.conf.Load(), q.engine.usual.Patience()
	for i := len(q.links) - 1; i >= 0; i-- {
		switch k := q.links[i]; {
		case k.Context().Err() != nil:
			q.forget(k, now)
		case conf.aged(k.began, now):
			q.retire(k)
		case !k.silence.Longer(patience, now):
			l = k
		case k.users == 0:
			q.retire(k)
		}
	}
	if l != nil {
		return l
	}
	for n := len(q.links); n > maxLive && len(q.links) > 1; { // all are silent: the upstream may be gone
		q.retire(q.links[0])
	}
	if n := len(q.links); n == maxLive || n > 0 && now < q.shut {
		l = q.links[n-1]
	}
	return l
}

// leave is for who does not wait for d any more.
func (q *quicPool) leave(d *quicDial) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if d.waiters--; d.link != nil {
		q.left(d.link)
	}
}

// left takes one user from l. q.mu is held.
func (q *quicPool) left(l *quicLink) {
	if l.users--; l.retired && l.users == 0 {
		l.CloseWithError(doqNoError, "")
	}
}

// sent notes that a query is sent on l now.
func (q *quicPool) sent(l *quicLink) (now int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now = q.engine.now()
	l.silence.Ask(now)
	return now
}

// put gives l back, whose query was sent at a time and ended so. ctx had its time. It reports whether anything was ever
// heard on l.
func (q *quicPool) put(ctx context.Context, l *quicLink, sent int64, err error) (heard bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.engine.now()
	l.silence.Done(sent, now, q.engine.usual.Patience())
	if err == nil || ctx.Err() == nil {
		l.silence.Heard(now)
	}
	switch {
	case err == nil:
		l.heard = now
	case lost(err):
		q.forget(l, now)
	case q.engine.proxy.silent(err, l.heard, sent, now):
		q.retire(l)
	}
	q.left(l)
	return l.heard > l.began
}

// forget retires l, which is closed. If nothing was ever heard on it, the upstream wants no more connections for a
// while. q.mu is held.
func (q *quicPool) forget(l *quicLink, now int64) {
	if l.heard == l.began {
		q.shut = now + slowDial
	}
	q.retire(l)
}

// retire lets l take no more queries. q.mu is held.
func (q *quicPool) retire(l *quicLink) {
	l.retired = true
	q.links = without(q.links, l)
	if l.users == 0 {
		l.CloseWithError(doqNoError, "")
	}
}

// dial opens a connection for those who wait for d.
func (q *quicPool) dial(d *quicDial) {
	t := q.engine.proxy.transport
	began := time.Now()
	ctx, cancel := context.WithTimeout(q.engine.ctx, min(t.dialTime.timeout(), 2*quicHandshake))
	defer cancel()
	conn, err := q.open(ctx)
	t.dialTime.note(time.Since(began))
	q.mu.Lock()
	defer q.mu.Unlock()
	defer close(d.done)
	q.dialling = nil
	now := q.engine.now()
	if d.err = err; err != nil {
		if refusal(err) {
			q.shut = now + slowDial
		}
		return
	}
	d.link = &quicLink{Conn: conn, began: now, heard: now, users: d.waiters}
	q.links = append(q.links, d.link)
}

// open does the handshake.
func (q *quicPool) open(ctx context.Context) (*quic.Conn, error) {
	p := q.engine.proxy
	cfg := namedTLS(p.transport.conf.Load().tls, p.hostPort).Clone()
	cfg.NextProtos, cfg.MinVersion = []string{"doq"}, tls.VersionTLS13
	return q.connect(ctx, cfg, -1)
}

// config is what a client is to QUIC: it takes no streams, sends nothing while it has nothing to ask, and
// gives up what is idle.
func (q *quicPool) config(conf *config) *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout: quicHandshake,
		InitialPacketSize:    transport.QUICPacket,
		MaxIdleTimeout:       max(conf.expire, 100*time.Millisecond),
		MaxIncomingStreams:   -1,
		TokenStore:           q.tokens,
	}
}

// stop closes the connection and the socket.
func (q *quicPool) stop() {
	q.mu.Lock()
	q.stopped = true
	links, t := append([]*quicLink(nil), q.links...), q.transport
	q.mu.Unlock()
	for _, l := range links {
		l.CloseWithError(doqNoError, "")
	}
	if t != nil {
		q.drop(t)
	}
}

// failed is err, of an operation on l, as errors of other transports look like.
func (l *quicLink) failed(ctx context.Context, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	remote, _ := l.RemoteAddr().(*net.UDPAddr)
	return quicErr(op, l.LocalAddr(), remote.AddrPort(), err)
}

// ask asks on s, a stream of l. An upstream that does not answer with one whole message, whose id is 0, does not speak
// the protocol, which ends the connection (RFC 9250 §4.3.3).
func (l *quicLink) ask(ctx context.Context, s *quic.Stream, query []byte, buf *bytes.Buffer) error {
	defer context.AfterFunc(ctx, func() {
		s.CancelRead(doqRequestCancelled)
		s.CancelWrite(doqRequestCancelled)
	})()
	frame := make([]byte, 0, 2+len(query))
	frame = append(binary.BigEndian.AppendUint16(frame, uint16(len(query))), query...)
	if _, err := s.Write(frame); err != nil {
		return l.failed(ctx, "write", err)
	}
	s.Close() // there is one query on each stream
	err := readReply(s, buf)
	switch b := buf.Bytes(); {
	case frameLen(b) == len(b):
	case err != io.EOF && err != nil:
		return l.failed(ctx, "read", err)
	case len(b) > 0:
		l.CloseWithError(doqProtocolError, "")
		fallthrough
	default:
		return l.failed(ctx, "read", errQUICReply)
	}
	if err == nil {
		s.CancelRead(doqNoMore) // some do not end their streams
	}
	buf.Next(2)
	if in, v := inspect(buf.Bytes()); v == tooShort || v == malformed || v == cutShort || in.id != 0 {
		l.CloseWithError(doqProtocolError, "") // who asked sees the reply, and that it is none
	}
	return nil
}

// readReply reads from r until there is one message with its length before it in buf, and what comes together with it.
func readReply(r io.Reader, buf *bytes.Buffer) (err error) {
	for n := 0; err == nil && buf.Len() < frameLen(buf.Bytes()); {
		buf.Grow(bytes.MinRead)
		room := buf.AvailableBuffer()
		room = room[:cap(room)]
		n, err = r.Read(room)
		buf.Write(room[:n])
	}
	return err
}

// frameLen is how long a message that begins with b is, with its length before it: at least that.
func frameLen(b []byte) int {
	if len(b) < 2 {
		return 2
	}
	return 2 + int(binary.BigEndian.Uint16(b))
}

// lost reports whether err is the end of a QUIC connection, not of a stream only. Any error of the socket is, also that
// of one datagram that the system does not send.
func lost(err error) bool {
	var errno syscall.Errno
	var app *quic.ApplicationError
	var idle *quic.IdleTimeoutError
	var reset *quic.StatelessResetError
	var transport *quic.TransportError
	return errors.As(err, &app) || errors.As(err, &idle) || errors.As(err, &reset) || errors.As(err, &transport) ||
		errors.As(err, &errno) || errors.Is(err, net.ErrClosed)
}

// quicErr is err as errors of other transports look like.
func quicErr(op string, from net.Addr, to netip.AddrPort, err error) error {
	return &net.OpError{Op: op, Net: "quic", Source: from, Addr: net.UDPAddrFromAddrPort(to), Err: err}
}
