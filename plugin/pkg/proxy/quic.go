package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/quic-go/quic-go"
)

// quicPool is the QUIC connection to an upstream, of which each query gets a stream. It is opened when a query needs
// it, and closes by itself when it is idle for too long. A second one is there while the first one is silent, which may
// be dead; there are more while the upstream takes too few streams on each (quicstreams.go).
type quicPool struct {
	engine *engine
	speaks *quicProtocol

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

// quicProtocol is what is spoken on the connections of a pool.
type quicProtocol struct {
	alpn      string // its name in the handshake
	streams   int64  // of one direction that the upstream may have open at one time; below 0 is none
	noError   quic.ApplicationErrorCode
	cancelled quic.StreamErrorCode
	begin     func(*quicLink) // is told of each connection that was opened; nil if nobody is to be
	cached    bool            // uses of open connections are counted
}

// quicLink is one connection.
type quicLink struct {
	*quic.Conn
	pool  *quicPool
	began int64

	// Guarded by the pool's lock.
	users   int   // streams, and who waits for one
	heard   int64 // when a reply came
	silence eventloop.Silence
	retired bool // takes no more queries, and is closed with the last one
	http3   http3Conn
}

// maxLive is how many connections an upstream has that takes enough streams on each: a second one while the first one
// is silent.
const maxLive = 2

// quicHandshake is how long to hear nothing during a handshake, and half of the time that it may take.
const quicHandshake = 2 * time.Second

// ask has a query asked on a stream of its own. got is told when there is a stream. Connections that the upstream
// closed, which were open before or brought others their replies, cost as many tries as over TLS; and so does an
// upstream that has not looked at the query (errNotTaken). One that ends others, or a stream, without a complaint costs
// one.
func (q *quicPool) ask(ctx context.Context, final bool, got func(net.Addr), on func(*quicLink, *quic.Stream) error) error {
	for n := 0; ; {
		l, open, err := q.get(ctx, final)
		if err != nil {
			return err
		}
		k, s, err := q.stream(ctx, l)
		l, open = k, open || k != l
		got(l.LocalAddr())
		sent := q.sent(l)
		if err = l.failed(ctx, "open", err); err == nil {
			err = l.ask(ctx, s, on)
		}
		again := errors.Is(err, errNotTaken) || n == 0 && q.parts(err)
		gone := again || lost(err)
		heard := q.put(ctx, l, sent, err)
		if !gone || !open && !heard && !again || n == maxRetries || ctx.Err() != nil {
			return err
		}
		if heard || again { // else it was one more than the upstream takes
			n++
		}
	}
}

// ask has a query asked on s, which is given up with ctx.
func (l *quicLink) ask(ctx context.Context, s *quic.Stream, on func(*quicLink, *quic.Stream) error) error {
	defer context.AfterFunc(ctx, func() { l.cancel(s) })()
	return on(l, s)
}

// cancel gives up the query on s.
func (l *quicLink) cancel(s *quic.Stream) {
	s.CancelRead(l.pool.speaks.cancelled)
	s.CancelWrite(l.pool.speaks.cancelled)
}

// get is a connection with one user more, and whether it was open before. Where others began to open it and heard
// nothing, who is final has another one opened: the upstream may be back before its own time is over.
func (q *quicPool) get(ctx context.Context, final bool) (l *quicLink, open bool, err error) {
	q.mu.Lock()
	if q.stopped {
		q.mu.Unlock()
		return nil, false, errStopped
	}
	p := q.engine.proxy
	if l = q.choose(q.engine.now()); l != nil {
		l.users++
		q.mu.Unlock()
		if q.speaks.cached {
			p.counts.hits.get(viaQUIC).Inc()
		}
		return l, true, nil
	}
	d := q.dialling
	joined := d != nil
	if !joined {
		d = q.begin()
		if q.speaks.cached {
			p.counts.miss(viaQUIC)
		}
	}
	d.waiters++
	q.mu.Unlock()
	select {
	case <-d.done:
		if d.err == nil {
			return d.link, false, nil
		}
		if final && joined && timedOut(d.err) {
			return q.get(ctx, true)
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
		l.CloseWithError(q.speaks.noError, "")
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
		l.CloseWithError(q.speaks.noError, "")
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
	d.link = &quicLink{Conn: conn, pool: q, began: now, heard: now, users: d.waiters}
	q.links = append(q.links, d.link)
	if q.speaks.begin != nil {
		q.speaks.begin(d.link)
	}
}

// open does the handshake.
func (q *quicPool) open(ctx context.Context) (*quic.Conn, error) {
	p := q.engine.proxy
	cfg := namedTLS(p.transport.conf.Load().tls, p.hostPort).Clone()
	cfg.NextProtos, cfg.MinVersion = []string{q.speaks.alpn}, tls.VersionTLS13
	if cfg.ServerName == "" && p.protocol == transport.HTTPS3 { // nobody verifies it
		cfg.ServerName, _, _ = net.SplitHostPort(p.hostPort)
	}
	return q.connect(ctx, cfg)
}

// config is what a client is to QUIC: it takes no streams, sends nothing while it has nothing to ask, and
// gives up what is idle.
func (q *quicPool) config(conf *config) *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:  quicHandshake,
		InitialPacketSize:     transport.QUICPacket,
		MaxIdleTimeout:        max(conf.expire, 100*time.Millisecond),
		MaxIncomingStreams:    -1,
		MaxIncomingUniStreams: q.speaks.streams,
		TokenStore:            q.tokens,
	}
}

// stop closes the connection and the socket.
func (q *quicPool) stop() {
	q.mu.Lock()
	q.stopped = true
	links, t := append([]*quicLink(nil), q.links...), q.transport
	q.mu.Unlock()
	for _, l := range links {
		l.CloseWithError(q.speaks.noError, "")
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

// parts reports whether err is that the upstream has closed a connection without a complaint, or reset a stream of
// HTTP/3 so.
func (q *quicPool) parts(err error) bool {
	var app *quic.ApplicationError
	return q.speaks.noError == codeNoError && enough(err) ||
		errors.As(err, &app) && app.Remote && app.ErrorCode == q.speaks.noError
}

// quicErr is err as errors of other transports look like.
func quicErr(op string, from net.Addr, to netip.AddrPort, err error) error {
	return &net.OpError{Op: op, Net: "quic", Source: from, Addr: net.UDPAddrFromAddrPort(to), Err: err}
}
