package cache

import (
	"context"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// wireRefresh fetches an entry's answer again for nobody, in the wire lane: it begins in the batch of the query that made it due, and goes
// on when what it waits for has ended. What the lane cannot do, and replies that are cut, it leaves to a fetch in the message lane.
type wireRefresh struct {
	cache  *Cache
	ctx    context.Context // the block's
	entry  *entry
	counts *counts

	packet  []byte // the query as it stood at the cache
	peer    wire.Peer
	query   wire.Query
	reply   wire.Reply
	waits   eventloop.Exchange // what it was parked on last
	scratch [128]byte          // of packet
}

// refreshWire is refresh for a query in the wire lane.
func (c *Cache) refreshWire(ctx context.Context, q *wire.Query, e *entry, n *counts, left int) {
	if !c.beginRefresh(e, n) {
		return
	}
	r := &wireRefresh{cache: c, ctx: anew(ctx, left), entry: e, counts: n}
	r.packet = q.Append(r.scratch[:0], 0)
	r.peer = wire.Peer{Client: q.Client, Local: q.Local, Arrival: time.Now()}
	r.run(q.Loop())
}

// run asks the plugins below, in a loop or, without one, where it may wait.
func (r *wireRefresh) run(loop *eventloop.Loop) {
	defer func() {
		if v := recover(); v != nil {
			recovered(r.entry, v)
			r.end(false)
		}
	}()
	q, w := &r.query, &r.reply
	out := wire.Unpack
	if q.Parse(r.packet) {
		q.Peer = r.peer
		q.SetLoop(loop)
		q.SetMayBlock(loop == nil)
		q.SetDeadline(r.peer.Arrival.Add(refreshTime))
		q.Await(r.waits)
		w.Reset(nil)
		out = r.cache.below(r.ctx, w, q)
	}
	switch x := q.Awaited(); {
	case out == wire.Park && x != nil && x != r.waits:
		r.waits = x
		x.Then(r)
	case out != wire.Done:
		go r.asMessage(false)
	case w.Holds() && w.Flag(wire.FlagTC):
		go r.asMessage(true)
	case w.Holds():
		k := r.cache.questionOf(q)
		hits := 0
		if r.entry.freq != nil {
			hits = r.entry.freq.Hits()
		}
		v := r.cache.takeWire(w, q, &k, r.cache.now(), hits, r.counts)
		r.end(r.cache.replaces(w.Rcode(), v))
	default:
		if isBogus(w.Err()) {
			r.entry.fetch.bogus.Store(true)
		}
		r.end(false)
	}
}

// Resume goes on where it may wait: nothing is known of the caller.
func (r *wireRefresh) Resume() { go r.run(nil) }

// ResumeIn implements eventloop.LoopResumer.
func (r *wireRefresh) ResumeIn(loop *eventloop.Loop) (done bool) {
	r.run(loop)
	return false
}

// asMessage fetches the answer in the message lane. wasCut says that it came, and was cut.
func (r *wireRefresh) asMessage(wasCut bool) {
	m, err := r.query.Msg()
	if err != nil {
		r.end(false)
		return
	}
	ctx, cancel := detached(r.ctx)
	defer cancel()
	rw := r.cache.fetch(ctx, &noClient{due: r.peer.Client, local: r.peer.LocalAddr()}, m, r.entry, r.counts, wasCut)
	r.end(rw.fit())
}

func (r *wireRefresh) end(ok bool) { r.cache.endRefresh(r.entry, ok) }
