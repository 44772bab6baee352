package proxy

import (
	"encoding/binary"
	"time"
)

// streamPool is the TCP or TLS connections to one upstream: few, with many queries on each, answered in any order
// (RFC 7766 §6.2.1.1); more if it takes those of a connection in turn. An upstream that closes after each reply gets
// one query per connection, once that is noticed, and until a connection brings a second one.
type streamPool struct {
	conns  []*streamConn // in the order of their beginning
	oneOff bool          // one query per connection at a time
	hasty  int           // connections, one after the other, that were closed after one reply with others under way
	shut   int64         // until when no other one is opened, as the last one was refused
	mutes  int           // connections in a row that were open and brought no reply, see mute
	muted  int64         // when that was found of the last one
	single int64         // until when a connection is for one query
	turns  turns         // whether queries of a connection are taken in turn
	slow   int64         // until when replies are waited for in any case
}

const (
	maxStreams   = 4           // connections that are opened before queries share one
	spareStreams = 4           // more, if none of these is of use
	maxOneOff    = 256         // connections to an upstream that takes one query on each
	hastyEnough  = 2           // so many hasty closes make oneOff
	maxRetries   = 3           // of one exchange, after connections that were closed under it
	slowDial     = 1_000000000 // ns; a connection that is not there by then may never be
)

// askStream puts x on a connection: one that was opened after since, in the engine's time.
func (e *engine) askStream(x *Exchange, since int64) {
	x.Proto = "tcp"
	e.mu.Lock()
	if e.stopped {
		e.unlock()
		e.end(x, errStopped)
		return
	}
	now := e.now()
	pool := e.streamsOf(x)
	c := pool.choose(since, now, e.usual.Patience())
	if c == nil {
		c = newStreamConn(e, now)
		c.pool, c.to, c.from = pool, x.To, x.From
		pool.conns = append(pool.conns, c)
		e.remember(x.To)
		e.keepHouse(now)
		e.running.Go(func() { c.run(c) })
		e.proxy.counts.miss(e.proxy.streamKind())
	} else {
		e.proxy.counts.hits.get(e.proxy.streamKind()).Inc()
	}
	if c.pending.n >= crowded {
		e.unlock()
		e.end(x, ErrBusy)
		return
	}
	x.reused = c.open
	x.on, x.Local = c, c.local
	c.pending.add(x, e.random)
	c.silence.Ask(now)
	binary.BigEndian.PutUint16(x.Query, x.id)
	c.out = binary.BigEndian.AppendUint16(c.out, uint16(len(x.Query)))
	c.out = append(c.out, x.Query...)
	e.schedule(x, now)
	if c.open {
		c.flush()
	}
	e.unlock()
}

// choose is the connection for one more query, nil if one should be opened: idle ones first, then new ones,
// then those with the fewest queries. One on which the upstream is silent for longer than patience may be dead: as long
// as there is another one, it gets none. Retired ones get none in any case, and hold no place. mu is held.
func (p *streamPool) choose(since, now int64, patience time.Duration) *streamConn {
	limit := maxStreams + p.turns.width
	if p.oneOff {
		limit = maxOneOff
	}
	var best, least, stuck *streamConn
	live, shut := 0, now < p.shut && !p.oneOff
	for _, c := range p.conns {
		if c.retired {
			continue
		}
		live++
		switch {
		case shut && !c.open:
		case !c.open && now-c.began > slowDial:
			if stuck == nil {
				stuck = c
			}
		case c.began < since, c.open && c.to == nil && c.silence.Longer(patience, now):
			// What is usual is not known of Peers.
			if least == nil || c.pending.n <= least.pending.n {
				least = c
			}
		case best == nil || c.pending.n < best.pending.n:
			best = c
		}
	}
	switch {
	case best != nil && (best.pending.n == 0 || live >= limit || shut):
		return best
	case least != nil && shut:
		return least
	case live < limit+spareStreams:
		return nil
	case stuck != nil: // makes room
		stuck.retire()
		return nil
	}
	return least
}

// refused notes that a connection could not be opened. It reports whether there are others: for what was to be asked on
// it, and for a while for all that comes. An upstream may allow so many only. mu is held.
func (p *streamPool) refused(now int64) (others bool) {
	for _, c := range p.conns {
		others = others || c.open && !c.retired && !p.oneOff
	}
	if others {
		p.shut = now + slowDial
	}
	return others
}

// remove takes c out; it may be out already.
func (p *streamPool) remove(c *streamConn) {
	for i := range p.conns {
		if p.conns[i] == c {
			p.conns = append(p.conns[:i], p.conns[i+1:]...)
			return
		}
	}
}

// judge notes how the upstream closed c with queries under way.
func (p *streamPool) judge(c *streamConn) {
	if c.answered > 1 {
		p.hasty = 0
	} else if c.answered == 1 {
		p.hasty++
		p.oneOff = p.oneOff || p.hasty >= hastyEnough
	}
}

// answering is how many open connections have brought a reply.
func (p *streamPool) answering() (n int) {
	for _, c := range p.conns {
		if c.open && c.answered > 0 {
			n++
		}
	}
	return n
}

func (p *streamPool) idle() (n int) {
	for _, c := range p.conns {
		if c.open && c.pending.n == 0 {
			n++
		}
	}
	return n
}

func (p *streamPool) reap(e *engine, conf *config, now int64) {
	for i := len(p.conns) - 1; i >= 0; i-- {
		c := p.conns[i]
		c.retired = c.retired || conf.aged(c.began, now)
		if c.pending.n == 0 && (c.retired || c.open && conf.idled(c.used, now)) {
			c.doom()
		}
	}
}

// stop takes all exchanges and dooms all connections.
func (p *streamPool) stop(e *engine) (failures []failure) {
	now := e.now()
	for _, c := range append([]*streamConn(nil), p.conns...) {
		for _, x := range c.pending.all() {
			e.take(x, now)
			failures = append(failures, failure{x, errStopped})
		}
		c.doom()
	}
	return failures
}
