package proxy

import (
	"crypto/tls"
	"net"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
	"golang.org/x/net/http2"
)

// httpConn is one connection of an httpPool, and the carrier of what is under way on it.
type httpConn struct {
	link
	pool  *httpPool
	began int64

	// Guarded by the engine's lock.
	pending  idTable
	local    net.Addr
	speaks   httpProtocol // since it is open
	open     bool         // dialled, and not lost
	settled  bool         // the first queries are out
	retired  bool         // takes no more queries
	told     bool         // the upstream has told that it takes no more
	silence  eventloop.Silence
	asked    int   // queries
	answered int   // of these
	used     int64 // when the last exchange ended
	heard    int64 // when something came in
}

// httpProtocol is a version of HTTP. Its methods but read are called with the engine's lock held.
type httpProtocol interface {
	// begin appends what the connection begins with to what is to be written.
	begin()
	// room is how many more queries it takes at this time.
	room() int
	// ask appends the request for x's query to what is to be written.
	ask(x *Exchange)
	// forget is told that x, which was asked, has ended.
	forget(x *Exchange)
	// read reads until an error.
	read(conn net.Conn) error
}

func newHTTPConn(p *httpPool, now int64) *httpConn {
	return &httpConn{link: newLink(p.engine), pool: p, began: now, used: now}
}

// dial implements linked.
func (c *httpConn) dial() (net.Conn, error) {
	return c.engine.proxy.dialTimed(c.ctx, true, http2.NextProtoTLS, "http/1.1")
}

// opened implements linked.
func (c *httpConn) opened(conn net.Conn) {
	e := c.engine
	e.mu.Lock()
	defer e.unlock()
	now := e.now()
	c.local, c.used, c.heard, c.open = conn.LocalAddr(), now, now, !c.retired
	c.pool.failing = false
	secure, _ := conn.(*tls.Conn)
	c.pool.plain = secure == nil || secure.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS
	if c.pool.plain {
		c.speaks = &http1{conn: c}
	} else {
		c.speaks = newHTTP2(c)
	}
	c.speaks.begin()
	c.pool.dispatch(now)
	c.settled = true
	c.flush()
	if c.pending.n == 0 && c.pool.tooManyIdle() {
		c.doom()
	}
}

// write implements linked.
func (c *httpConn) write(conn net.Conn, p []byte) error {
	_, err := conn.Write(p)
	return err
}

// read implements linked.
func (c *httpConn) read(conn net.Conn) error {
	return c.speaks.read(conn)
}

// room is how many more queries it takes at this time. mu is held.
func (c *httpConn) room() int {
	return min(c.speaks.room(), c.pool.limit.left(c.asked), crowded-c.pending.n)
}

// ask has x go out. mu is held.
func (c *httpConn) ask(x *Exchange, now int64) {
	x.on, x.Local, x.reused = c, c.local, c.settled
	c.pending.add(x, c.engine.random)
	c.silence.Ask(now)
	c.asked++
	x.Query[0], x.Query[1] = 0, 0 // as caches of HTTP need it (RFC 8484 §4.1)
	c.speaks.ask(x)
	c.engine.schedule(x, now)
	c.flush()
	switch limit := &c.pool.limit; {
	case limit.left(c.asked) == 0:
		c.retired = true
	case limit.nears(c.asked):
		c.pool.openAhead(c, now)
	}
}

// hears notes that something came in. mu is held.
func (c *httpConn) hears(now int64) {
	c.heard = now
	c.silence.Heard(now)
}

// finish takes x, to which the response has come. The caller gives the lock back, and then calls respond. mu is held.
func (c *httpConn) finish(x *Exchange, now int64) {
	c.answered++
	c.pool.proven = true
	c.engine.take(x, now)
}

// respond ends x, which was taken, with a response. mu is not held.
func (c *httpConn) respond(x *Exchange, r *httpResponse) {
	e := c.engine
	if c.answered == 1 { // the reader alone changes it
		nonblock.QuickAck(c.conn, false)
	}
	if r.redirects() {
		e.proxy.redirected.Store(e.now())
		e.askByWorker(x)
		return
	}
	b, err := r.message(e.proxy.addr)
	if err == nil {
		err = e.proxy.accept(x, b)
	}
	e.end(x, err)
}

// refuse takes x, which the upstream says it has not looked at, to have it go out on another connection. mu is held;
// the failure is ended when it is given back.
func (c *httpConn) refuse(x *Exchange, now int64, failures []failure) []failure {
	c.engine.take(x, now)
	if !c.pool.putBack(x, now) {
		failures = append(failures, failure{x, errNotTaken})
	}
	return failures
}

// lost implements linked. It ends the connection's exchanges, or has them go out on another one.
func (c *httpConn) lost(err error) {
	e, p := c.engine, c.pool
	defer e.ending.enter().Done()
	e.mu.Lock()
	now := e.now()
	opened, byPeer := c.conn != nil, closedByPeer(err)
	p.remove(c)
	c.retired, c.open = true, false
	var failures []failure
	for _, x := range c.pending.all() {
		e.take(x, now)
		again := byPeer && (x.reused || p.proven) && x.retries < maxRetries && p.putBack(x, now)
		switch {
		case again:
			x.fresh = c.heard // what began since the upstream was last heard of is most likely alive
			if x.retries++; x.retries > 1 {
				x.fresh = now
			}
		case byPeer && x.reused:
			failures = append(failures, failure{x, ErrCachedClosed})
		default:
			failures = append(failures, failure{x, located(err, c.conn)})
		}
	}
	if !opened && c.ctx.Err() == nil {
		failures = append(failures, p.failed(err, now)...)
	}
	p.dispatch(now)
	e.unlock()
	e.endAll(failures)
}

// remove takes c out; it may be out already.
func (p *httpPool) remove(c *httpConn) { p.conns = without(p.conns, c) }

// late implements carrier. A connection on which nothing came since x was sent may be dead, and takes no more queries.
func (c *httpConn) late(x *Exchange) error {
	if c.heard <= c.engine.now()-int64(x.Timeout) {
		c.retired = true
	}
	return late("read", "tcp", c.local, c.conn.RemoteAddr())
}

// drop implements carrier.
func (c *httpConn) drop(x *Exchange, now int64) {
	c.pending.remove(x)
	c.silence.Done(x.sent, now, c.engine.usual.Patience())
	c.used = now
	if c.open {
		c.speaks.forget(x)
		c.flush()
		if len(c.pool.waiting) > 0 { // else who lost the connection does so when all have come back
			c.pool.dispatch(now)
		}
	}
	conf := c.engine.proxy.transport.conf.Load()
	if c.pending.n == 0 && (c.retired || conf.aged(c.began, now) || c.pool.tooManyIdle()) {
		c.doom()
	}
}

// retire lets the connection take no more queries. It ends with the last one. mu is held.
func (c *httpConn) retire() {
	if c.retired = true; c.pending.n == 0 {
		c.doom()
	}
}

// doom takes the connection out of the pool and lets it be closed. mu is held.
func (c *httpConn) doom() {
	if c.open && !c.told && c.pool.limit.n > 0 && c.pool.limit.left(c.asked) == 0 {
		c.pool.limit.exceeded()
	}
	c.retired, c.open = true, false
	c.pool.remove(c)
	c.engine.doomed = append(c.engine.doomed, c)
}
