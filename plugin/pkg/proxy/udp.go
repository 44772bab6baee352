package proxy

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/udpsockets"
)

// udpPool is the UDP sockets to one upstream. Each query, or batch of them, goes out on a socket of its own as long
// as more may be opened, on a random one then: so its port cannot be guessed (RFC 5452 §9.2), nor can its id. A
// socket that has carried wornOut is closed, so that ports change however busy they are.
type udpPool struct {
	make    func() (udpsockets.Set, error) // udpsockets.New
	sockets udpsockets.Set
	lists   []*socketList // of loops, and one for those who are in none
	none    socketList
	n       int // in all lists
	idle    int // of these without an exchange
	opening int
	retry   int64 // when one is opened again, after that has failed
}

// socketList is sockets from which one is taken at random.
type socketList struct{ all []*udpSocket }

const wornOut = 512 // exchanges

// udpSocket is a socket to one server, and the carrier of what is under way on it.
type udpSocket struct {
	udpsockets.Socket
	engine  *engine
	to      *Peer // nil if it is the upstream's; of its present exchange
	kind    spareKind
	pending idTable
	opened  int64
	used    int64 // when the last exchange ended
	carried int   // exchanges
	// answered says that the present exchange with a Peer had its reply: nothing more is to come on that port
	answered bool
	list     *socketList
	index    int // in list
}

// askUDP sends x at the time now: at the end of the batch that loop is in, or at once without one.
func (e *engine) askUDP(x *Exchange, loop *eventloop.Loop, now int64) {
	x.Proto = "udp"
	later := e.unsentOf(loop)
	e.mu.Lock()
	if x.proxy.dismissed {
		e.unlock()
		e.end(x, errStopped)
		return
	}
	s := later.socket()
	if s == nil {
		var err error
		if s, err = e.socketFor(x, later, loop, now); err != nil {
			e.unlock()
			e.end(x, err)
			return
		}
	} else {
		e.reuse(x)
	}
	if s.pending.n == 0 && x.reused {
		e.udp.idle--
	}
	s.pending.add(x, e.random)
	s.carried++
	x.on, x.Local = s, s.Addr()
	e.schedule(x, now)
	id, query := x.id, x.Query
	binary.BigEndian.PutUint16(query, id)
	if x.proxy.randomCase {
		x.flips = new(replies.Flips)
		x.flips.Mix(query, e.random)
	}
	if later != nil {
		later.add(loop, unsentQuery{s, x, id, query, 0})
		e.unlock()
		return
	}
	e.unlock()
	e.sendUDP(s, x, id, query)
}

// sendUDP sends the query of x, which is under way on s. If that fails, x ends.
func (e *engine) sendUDP(s *udpSocket, x *Exchange, id uint16, query []byte) {
	if err := s.Send(query); err != nil {
		e.notSent(s, x, id, err)
	}
}

// add puts a new socket into a list of the pool.
func (p *udpPool) add(s *udpSocket, list *socketList) {
	if !slices.Contains(p.lists, list) {
		p.lists = append(p.lists, list)
	}
	s.list, s.index = list, len(list.all)
	list.all = append(list.all, s)
	p.n++
}

// reuse notes that x goes out on a socket that others had before.
func (e *engine) reuse(x *Exchange) {
	x.reused = true
	e.proxy.counts.hits.get(viaUDP).Inc()
}

// arrival is a datagram that came, and what it is the reply to.
type arrival struct {
	replies.Incoming
	b []byte
	v replies.Verdict
	x *Exchange // taken; nil if it is none

	from netip.AddrPort // see udpsockets.Batch
}

// received looks at datagrams that came on s at the time now, and empties all. Those whose exchange it ends are
// found first, all at once.
func (e *engine) received(s *udpSocket, all *udpsockets.Batch, loop *eventloop.Loop, now int64) {
	defer e.ending.enter().Done()
	var ignored [replies.Verdicts]int
	kept, _ := all.Kept.(*[]arrival)
	if kept == nil {
		kept = new([]arrival)
		all.Kept = kept
	}
	arrivals := (*kept)[:0]
	for _, b := range all.Datagrams {
		if in, v := replies.Inspect(b); v > replies.Bare && (v != replies.Malformed || s.to == nil) {
			ignored[v]++
		} else {
			arrivals = append(arrivals, arrival{in, b, v, nil, all.From})
		}
	}
	if len(arrivals) > 0 {
		if forged := e.takeAll(s, arrivals, now, &ignored); forged != nil {
			e.end(forged, ErrForged)
		}
	}
	for v, n := range ignored {
		if n > 0 {
			e.proxy.ignore(replies.Verdict(v), n)
		}
	}
	for i := range arrivals {
		if a := &arrivals[i]; a.x != nil {
			e.replied(a, loop, now)
		}
	}
	clear(arrivals)
	*kept, all.Datagrams = arrivals, all.Datagrams[:0]
}

// takeAll takes the exchanges that arrivals on s are the replies to, and counts those that are none. forged is an
// exchange that was taken since somebody guesses its id, nil if there is none.
func (e *engine) takeAll(s *udpSocket, arrivals []arrival, now int64, ignored *[replies.Verdicts]int) (forged *Exchange) {
	e.mu.Lock()
	defer e.unlock()
	for i := range arrivals {
		a := &arrivals[i]
		if a.from.IsValid() && a.from != s.to.source {
			ignored[replies.OtherAddress]++
			continue
		}
		x := s.pending.find(a.ID)
		if x == nil {
			ignored[replies.OtherID]++
			if x = e.nearMiss(s, now); x != nil {
				forged = x
			}
			continue
		}
		if why := x.mismatch(&a.Incoming, a.b, a.v); why != replies.Proper {
			ignored[why]++
			continue
		}
		s.answered = true
		e.take(x, now)
		e.together.answered(x.batch)
		a.x = x
	}
	return forged
}

// replied ends the exchange that was taken for a, or goes on with it.
func (e *engine) replied(a *arrival, loop *eventloop.Loop, now int64) {
	x, b := a.x, a.b
	switch a.v {
	case replies.Malformed:
		e.proxy.ignore(replies.Malformed, 1)
		e.endAt(x, ErrMalformed, now)
		return
	case replies.CutShort:
		b = a.Emptied(b)
	case replies.Bare:
		b = a.Completed(b, x.Query)
	}
	if e.refusedCookie(x, &a.Facts) {
		return
	}
	if x.flips != nil {
		x.flips.UndoReply(b, x.Query)
	}
	x.Reply, x.Facts, x.Loop = b, a.Facts, loop
	e.endAt(x, nil, now)
}

// failed ends what is under way on s: the system told that nobody listens there, or the like.
func (e *engine) failed(s *udpSocket, about netip.AddrPort, err error) {
	defer e.ending.enter().Done()
	e.mu.Lock()
	if about.IsValid() && about != s.to.source { // of a former peer, or somebody guesses
		e.unlock()
		return
	}
	now := e.now()
	var failures []failure
	for _, x := range s.pending.all() {
		e.take(x, now)
		failures = append(failures, failure{x, err})
	}
	e.unlock()
	e.endAll(failures)
}

// Moves implements udpsockets.Receiver.
func (s *udpSocket) Moves() bool { return s.to != nil }

// Now implements udpsockets.Receiver.
func (s *udpSocket) Now() int64 { return s.engine.now() }

// Received implements udpsockets.Receiver.
func (s *udpSocket) Received(all *udpsockets.Batch, loop *eventloop.Loop, now int64) {
	s.engine.received(s, all, loop, now)
}

// Failed implements udpsockets.Receiver.
func (s *udpSocket) Failed(about netip.AddrPort, err error) { s.engine.failed(s, about, err) }

// close implements closer.
func (s *udpSocket) close() { s.Close() }

func (s *udpSocket) late(x *Exchange) error {
	if x.shown != nil && x.shown.spurned {
		x.proxy.cookiesOf(x).forget()
	}
	e := s.engine
	switch {
	case s.isAstray():
		e.udp.wearOut(e)
	case e.together.missed(x.batch, e.now()):
		e.tellSuspended("it answers nothing of what is sent together")
	}
	if s.to != nil {
		return late("read", "udp", nil, nil)
	}
	s.carried = wornOut // replies to its address may not arrive any more
	return late("read", "udp", s.Addr(), net.UDPAddrFromAddrPort(e.proxy.where.last()))
}

func (s *udpSocket) drop(x *Exchange, now int64) {
	s.pending.remove(x)
	s.used = now
	if s.pending.n > 0 {
		return
	}
	p, conf := &s.engine.udp, s.engine.proxy.transport.conf.Load()
	p.idle++
	if s.to != nil || conf.maxIdle > 0 && p.idle > conf.maxIdle || conf.aged(s.opened, now) || s.carried >= wornOut {
		p.close(s.engine, s)
	}
}

// close closes an idle socket.
func (p *udpPool) close(e *engine, s *udpSocket) {
	all := s.list.all
	last := len(all) - 1
	all[s.index] = all[last]
	all[s.index].index = s.index
	all[last] = nil
	s.list.all = all[:last]
	p.n--
	p.idle--
	if s.to != nil && s.answered {
		e.doomed = append(e.doomed, spent{s})
		return
	}
	if s.to != nil {
		peerBudget.give()
	}
	socketBudget.give()
	e.doomed = append(e.doomed, s)
}

// each calls f with each socket, which it may close.
func (p *udpPool) each(f func(*udpSocket)) {
	for _, list := range p.lists {
		for i := len(list.all) - 1; i >= 0; i-- {
			f(list.all[i])
		}
	}
}

func (p *udpPool) reap(e *engine, conf *config, now int64) {
	p.each(func(s *udpSocket) {
		if s.pending.n == 0 && (conf.idled(s.used, now) || conf.aged(s.opened, now)) {
			p.close(e, s)
		}
	})
}

// stop takes all exchanges and dooms all sockets.
func (p *udpPool) stop(e *engine) (failures []failure) {
	now := e.now()
	p.each(func(s *udpSocket) {
		for _, x := range s.pending.all() {
			e.take(x, now)
			failures = append(failures, failure{x, errStopped})
		}
	})
	p.each(func(s *udpSocket) { p.close(e, s) })
	return failures
}
