package proxy

import (
	"errors"
	"slices"
	"time"
)

// httpPool is the connections of HTTPS to one upstream. One of HTTP/2 has all queries as long as it takes them, one of
// HTTP/1.1 a single one at a time. A query that finds no room on any waits here, and goes out on the first one that has
// some: so a query is never bound to a connection that does not take it. The engine's lock guards it.
type httpPool struct {
	engine  *engine
	conns   []*httpConn  // in the order of their beginning
	waiting []*Exchange  // the next one first
	shut    int64        // until when no other one is opened, as the last one was refused
	plain   bool         // the upstream speaks HTTP/1.1
	streams int          // queries that it takes on a connection at one time, as it told; 0 as long as it has not
	limit   requestLimit // of those that it takes on a connection in all
	proven  bool         // the upstream has answered a query
	dialled int64        // when the opening of a connection began
	failing bool         // the last one could not be opened, which was told at once
	again   int64        // when to dispatch again, as a connection that is opened is late then
}

const (
	// maxHTTPConns is how many connections there are: where each takes a single query, so many are under way.
	maxHTTPConns = 128
	maxIdleHTTP  = 25                    // of these that are idle
	maxDials     = 8                     // that are opened at one time
	dialPause    = 20 * time.Millisecond // between their beginnings, if one will not do for long
	maxSilent    = 2                     // connections, of which another one is opened while all are silent
	maxReturns   = 16                    // of a query that connections do not take
	httpIdle     = 90 * time.Second      // for which a connection stays open, at least
)

// errNotTaken means that connections, one after the other, have taken no more queries.
var errNotTaken = errors.New("doh: the upstream's connections take no queries")

// askHTTP has x go out on a connection.
func (e *engine) askHTTP(x *Exchange) {
	x.Proto = "tcp"
	p := &e.https
	e.mu.Lock()
	var err error
	switch {
	case e.stopped:
		err = errStopped
	case len(p.waiting) >= crowded:
		err = ErrBusy
	}
	if err != nil {
		e.unlock()
		e.end(x, err)
		return
	}
	now := e.now()
	if len(p.waiting) == 0 {
		if c := p.choose(x, now); c != nil {
			c.ask(x, now)
			e.unlock()
			return
		}
	}
	x.on = p
	p.waiting = append(p.waiting, x)
	e.schedule(x, now)
	p.dispatch(now)
	e.unlock()
}

// dispatch has queries that wait go out, and opens connections for those that find no room. mu is held.
func (p *httpPool) dispatch(now int64) {
	if p.engine.stopped {
		return
	}
	all, left := p.waiting, p.waiting[:0]
	none := int64(never) // there is no connection for queries that need one as new as that
	for i, x := range all {
		if none == 0 {
			left = append(left, all[i:]...)
			break
		}
		if x.fresh < none {
			if c := p.choose(x, now); c != nil {
				c.ask(x, now)
				continue
			}
			none = x.fresh
		}
		left = append(left, x)
	}
	clear(all[len(left):])
	if p.waiting = left; len(left) == 0 {
		p.again = never
		return
	}
	for p.wantsMore(now) {
		p.open(now)
	}
	p.again = never
	for _, at := range [...]int64{p.shut, p.pause()} {
		if at > now {
			p.again = min(p.again, at)
		}
	}
	for _, c := range p.conns {
		if at := c.began + slowDial + 1; !c.open && at > now {
			p.again = min(p.again, at)
		}
	}
	p.engine.wakeBy(p.again)
}

// open opens one more connection. mu is held.
func (p *httpPool) open(now int64) {
	c := newHTTPConn(p, now)
	p.conns = append(p.conns, c)
	p.dialled = now
	p.engine.keepHouse(now)
	p.engine.running.Go(func() { c.run(c) })
}

// openAhead opens a connection for the time when c takes no more, unless there is another one. mu is held.
func (p *httpPool) openAhead(c *httpConn, now int64) {
	for _, other := range p.conns {
		if other != c && !other.retired {
			return
		}
	}
	p.open(now)
}

// choose is the connection for x, nil if none has room: the one that has the fewest queries. One on which the upstream
// is silent may be dead: it gets none as long as there is another one, or one may be opened. mu is held.
func (p *httpPool) choose(x *Exchange, now int64) *httpConn {
	conf, patience := p.engine.proxy.transport.conf.Load(), p.engine.usual.Patience()
	var best, silent *httpConn
	live, opening := 0, false
	for i := len(p.conns) - 1; i >= 0; i-- {
		c := p.conns[i]
		if c.settled && !c.retired && conf.aged(c.began, now) {
			c.retire()
		}
		if c.retired {
			continue
		}
		live++
		switch {
		case !c.open:
			opening = opening || now-c.began <= slowDial
		case c.room() == 0, c.began < x.fresh:
		case c.silence.Longer(patience, now):
			silent = c
		case best == nil || c.pending.n <= best.pending.n:
			best = c
		}
	}
	if best == nil && !opening && (live >= maxSilent || now < p.shut) {
		best = silent
	}
	return best
}

// wantsMore reports whether one more connection is to be opened, for those that wait. One whose opening takes long may
// never be there. mu is held.
func (p *httpPool) wantsMore(now int64) bool {
	live, open, opening, late := 0, 0, 0, 0
	for _, c := range p.conns {
		if c.retired {
			continue
		}
		live++
		switch {
		case c.open:
			open++
		case now-c.began > slowDial:
			late++
		default:
			opening++
		}
	}
	if live >= maxHTTPConns || opening+late >= maxDials || open > 0 && now < max(p.shut, p.pause()) {
		return false
	}
	if p.failing && opening > 0 { // which tell whether the upstream is there
		return false
	}
	if p.limit.n > 0 && now-p.dialled >= int64(dialPause) { // they are used up while others are opened
		return true
	}
	return opening*p.each() < len(p.waiting)
}

// pause is until when no other connection is opened as long as one is open: that the network is away is told at once.
func (p *httpPool) pause() int64 {
	if !p.failing {
		return 0
	}
	return p.dialled + int64(dialPause)
}

// each is how many queries a new connection will take at one time.
func (p *httpPool) each() int {
	n := crowded
	if p.plain {
		n = 1
	} else if p.streams > 0 {
		n = p.streams
	}
	return min(n, p.limit.left(0))
}

// putBack has x, which was taken from its connection, go out on another one, before all others. It reports false if x
// has come back too often. mu is held.
func (p *httpPool) putBack(x *Exchange, now int64) bool {
	if x.returned++; x.returned > maxReturns || p.engine.stopped {
		return false
	}
	x.on = p
	p.waiting = slices.Insert(p.waiting, 0, x)
	p.engine.schedule(x, now)
	return true
}

// failed notes that a connection could not be opened, and takes those who waited for it: unless there is another one,
// or one is opened. One whose opening takes long is none, for an upstream that said at once that it is not there. mu is
// held.
func (p *httpPool) failed(err error, now int64) (failures []failure) {
	p.failing = !timedOut(err)
	others := false
	for _, c := range p.conns {
		if c.retired {
			continue
		}
		if c.open && refusal(err) { // the upstream may allow so many only
			p.shut = now + slowDial
		}
		others = others || c.open || !p.failing || now-c.began <= slowDial
	}
	if others {
		return nil
	}
	for _, x := range slices.Clone(p.waiting) {
		p.engine.take(x, now)
		failures = append(failures, failure{x, err})
	}
	return failures
}

// late implements carrier.
func (p *httpPool) late(*Exchange) error {
	return late("dial", "tcp", nil, p.engine.proxy.netAddr())
}

// drop implements carrier.
func (p *httpPool) drop(x *Exchange, _ int64) {
	if i := slices.Index(p.waiting, x); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
}

// tooManyIdle reports whether more connections of HTTP/1.1 have nothing to do than are kept. mu is held.
func (p *httpPool) tooManyIdle() bool {
	if !p.plain {
		return false
	}
	n := 0
	for _, c := range p.conns {
		if c.open && c.pending.n == 0 {
			n++
		}
	}
	return n > maxIdleHTTP
}

func (p *httpPool) reap(conf *config, now int64) {
	for _, c := range slices.Clone(p.conns) {
		c.retired = c.retired || c.settled && conf.aged(c.began, now)
		if c.pending.n == 0 && (c.retired || c.open && now-c.used > max(int64(httpIdle), int64(conf.expire))) {
			c.doom()
		}
	}
}

// stop takes all exchanges and dooms all connections.
func (p *httpPool) stop() (failures []failure) {
	now := p.engine.now()
	under := slices.Clone(p.waiting)
	for _, c := range p.conns {
		under = append(under, c.pending.all()...)
	}
	for _, x := range under {
		p.engine.take(x, now)
		failures = append(failures, failure{x, errStopped})
	}
	for _, c := range slices.Clone(p.conns) {
		c.doom()
	}
	return failures
}

// requestLimit is how many queries an upstream takes on each connection, which it does not tell before: some, such as
// nginx, close one after so many. It is learned, so that queries do not go where they are not taken.
type requestLimit struct {
	n    int // 0 if none is known
	last int // at how many the last connection was ended
}

// left is how many queries a connection takes on which so many were asked.
func (l *requestLimit) left(asked int) int {
	if l.n == 0 {
		return crowded
	}
	return max(l.n-asked, 0)
}

// nears reports whether a connection on which so many were asked takes a quarter of what it took.
func (l *requestLimit) nears(asked int) bool { return l.n > 0 && asked == l.n-l.n/4 }

// ended notes that the upstream ended a connection after taken queries, and has left others. Once that may be for any
// reason.
func (l *requestLimit) ended(taken int, others bool) {
	if taken > 0 && (others || taken == l.last) {
		l.n = taken
	}
	l.last = taken
}

// exceeded notes that a connection has had as many as are known, and the upstream did not end it.
func (l *requestLimit) exceeded() {
	if l.n *= 2; l.n > crowded {
		l.n = 0
	}
}
