package cache

import (
	"context"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// missWire asks the plugins below, and keeps what they answer. In the wire lane, too, they are asked with the AD bit. now is when k was looked up.
func (c *Cache) missWire(ctx context.Context, w *wire.Reply, q *wire.Query, k *question, now time.Time) wire.Outcome {
	before := q.Awaited()
	other, again := before.(*missEnding)
	if again && other.Over() && other.failure() != nil {
		n := c.countsOf(ctx)
		n.requests.Inc()
		n.misses.Inc()
		w.Fail(wire.ServFail, other.failed.err)
		return wire.Done
	}
	if before != nil && !again || !shares(q, k) {
		return c.askWire(ctx, w, q, k, now)
	}
	if c.atOnce.has(k) {
		out := c.askWire(ctx, w, q, k, now)
		if out != wire.Done {
			c.atOnce.drop(k)
		}
		return out
	}
	mine, others := c.flights.claim(k)
	if _, asks := others.(*missEnding); others != nil && !(again && asks) {
		q.Await(others)
		return wire.Park
	}
	if mine == nil {
		return c.askWire(ctx, w, q, k, now)
	}
	return c.lead(ctx, w, q, k, now, mine)
}

// lead is missWire for the first one to miss k.
func (c *Cache) lead(ctx context.Context, w *wire.Reply, q *wire.Query, k *question, now time.Time, mine *flight) wire.Outcome {
	before, shared := q.Awaited(), false
	defer func() {
		if !shared { // also if the plugins below panic
			mine.over(nil)
		}
	}()
	out := c.askWire(ctx, w, q, k, now)
	switch x := q.Awaited(); {
	case out == wire.Park && x != nil && x != before:
		shared = true
		mine.share(x)
	case out == wire.Done:
		c.atOnce.add(k)
	}
	return out
}

// askWire is missWire for one that others do not wait for.
func (c *Cache) askWire(ctx context.Context, w *wire.Reply, q *wire.Query, k *question, now time.Time) wire.Outcome {
	out := c.below(ctx, w, q)
	if out != wire.Done {
		return out
	}
	n := c.countsOf(ctx)
	n.requests.Inc()
	n.misses.Inc()
	switch {
	case w.Holds():
		if q.Loop() == nil { // the plugins below may have waited
			now = c.now()
		}
		c.takeWire(w, q, k, now, 0, n)
	case c.failures && w.Failed() && w.Rcode() == wire.ServFail && (q.Deadline().IsZero() || time.Now().Before(q.Deadline())):
		var own wire.Reply // w has what the server and the errors plugin are to know
		own.Reset(nil)
		c.keepFailure(&own, q, k, w.Err(), n)
	}
	return out
}

// below hands q to the plugins below.
func (c *Cache) below(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	mark := q.Mark()
	defer q.Restore(mark)
	q.SetFlag(wire.FlagAD, true)
	if e := q.EDNS(); c.stripECS && e.Set&wire.HasECS != 0 {
		e.Options, e.Set = withoutECS(e.Options), e.Set&^wire.HasECS
	}
	w.FoldOwners()
	return plugin.NextWire(c.Name(), c.Next, ctx, w, q)
}

// maxRcode is the greatest rcode that needs no OPT record. Replies with greater ones are passed on as they are.
const maxRcode = 0xF

// takeWire keeps the reply that w holds, if it is to be kept, and makes it what the client gets. hits are of the entry that is
// refreshed.
func (c *Cache) takeWire(w *wire.Reply, q *wire.Query, k *question, now time.Time, hits int, n *counts) verdict {
	flags, withOPT := w.OPT()
	whom, fits := k.net.scopeOf(w.Option(wire.OptionECS))
	v := verdict{kind: response.OtherError}
	if w.Rcode() <= maxRcode {
		v = c.classify(w, facts{
			question:    q,
			truncated:   w.Flag(wire.FlagTC),
			checkSigs:   withOPT && flags&wire.OPTFlagDO != 0,
			clientScope: !fits || k.odd,
			now:         now,
		})
	}
	ede := edeOf(nil, w.Options())
	w.DropOPT()
	if v.treat {
		w.SetTTLs(v.ttl)
	}
	if v.store {
		price := costRemote
		if q.JustCame() { // and so it was at hand
			price = costLocal
		}
		c.keep(w, k, stored{verdict: v, scope: whom, ede: ede, hits: hits, cost: price, since: q.Arrival}, now, n)
	}
	if fits {
		addScope(w, q, whom)
	}
	addEDE(w, q, ede)
	if !q.DO() && !q.AD() {
		w.SetFlag(wire.FlagAD, false)
	}
	return v
}

// missedBefore reports whether an entry is one that a query, when it came, did not find: it has waited for it.
func missedBefore(q *wire.Query, e *entry) bool {
	return q.Awaited() != nil && e.stored >= momentOf(q.Arrival)
}
