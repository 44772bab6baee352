package cache

import (
	"context"
	"net"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// missWire asks the plugins below, and keeps what they answer. In the lane, too, they are asked with the AD bit.
func (c *Cache) missWire(ctx context.Context, w *wire.Reply, q *wire.Query, k *key) wire.Outcome {
	before := q.Awaited()
	share := shares(q)
	if share && before == nil {
		if x := c.flights.of(k); x != nil {
			q.Await(x)
			return wire.Park
		}
	}
	mark := q.Mark()
	q.SetFlag(wire.FlagAD, true)
	w.FoldOwners()
	out := plugin.NextWire(c.Name(), c.Next, ctx, w, q)
	q.Restore(mark)
	switch {
	case out == wire.Park && share && q.Awaited() != before:
		c.flights.add(k, q.Awaited())
	case out == wire.Done:
		n := c.countsOf(ctx)
		n.requests.Inc()
		n.misses.Inc()
		if w.Holds() {
			c.takeWire(w, q, k, n)
		}
	}
	return out
}

// takeWire keeps the reply that w holds, if it is to be kept, and makes it what the client gets.
func (c *Cache) takeWire(w *wire.Reply, q *wire.Query, k *key, n *counts) {
	flags, withOPT := w.OPT()
	now := c.now()
	v := c.classify(w, facts{
		question:    q,
		truncated:   w.Flag(wire.FlagTC),
		checkSigs:   withOPT && flags&wire.OPTFlagDO != 0,
		clientScope: forSomeClients(w),
		now:         now,
	})
	w.DropOPT()
	if v.treat {
		w.SetTTLs(v.ttl)
	}
	if v.store {
		c.keep(w, k, kept{verdict: v}, now, n)
	}
	if !q.DO() && !q.AD() {
		w.SetFlag(wire.FlagAD, false)
	}
}

// forSomeClients is scoped for the lane.
func forSomeClients(w *wire.Reply) bool {
	data, ok := w.Option(wire.OptionECS)
	return ok && len(data) > 3 && data[3] > 0
}

// missedBefore reports whether an entry is one that a query, when it came, did not find: it has waited for it.
func missedBefore(q *wire.Query, e *entry) bool {
	return q.Awaited() != nil && !e.stored.Before(q.Arrival)
}

// refreshWire is refresh for a query in the lane.
func (c *Cache) refreshWire(ctx context.Context, q *wire.Query, e *entry, n *counts) {
	if r, err := q.Msg(); err == nil {
		c.refresh(ctx, &noClient{local: net.UDPAddrFromAddrPort(q.Local)}, r, e, n)
	}
}
