package cache

import (
	"context"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Names of the two classes of answers, as in the Corefile and in metrics.
const (
	Success = "success"
	Denial  = "denial"
)

// Cache is the plugin. Its zero value with Next set serves all zones with the default settings.
type Cache struct {
	Next plugin.Handler
	// Zones are the zones whose names are looked up here; all if there are none.
	Zones []string

	settings
	view string // the view of the block, for metrics

	once      sync.Once
	zoneNames [][]byte // Zones in wire form; nil for all
	bypassed  [][]byte // zones of ZoneBypassers in wire form
	*stores            // nil until prepare, or takeOver
	text      string   // of what a later cache must be told to take them over, "" if none may; see handover.go
	around    string   // of all server blocks, a hash; see handover.go
	label     string   // Zones, for metrics
	counts    sync.Map // *counts by server address
	refreshes chan struct{}
	flights   flights
	atOnce    answeredAtOnce
	sweeper   *sweeper // nil unless setup made the cache
	now       func() time.Time
	arrivals  bool // now is the time by which queries arrive
}

// New is a Cache for all zones with the default settings.
func New() *Cache { return &Cache{Zones: []string{"."}, settings: defaults()} }

// maxRefreshes is how many refreshes may run at one time in the background; what is due
// beyond is left for a later hit.
const maxRefreshes = 1024

// prepare completes a Cache at its first use.
func (c *Cache) prepare() {
	c.once.Do(func() {
		if c.success.max == 0 { // not made by New or setup
			c.settings = defaults()
		}
		if b := processBudget(); c.stores == nil {
			c.stores = &stores{positive: newStore(c.success.capacity, b, 0), negative: newStore(c.denial.capacity, b, 1), owner: c}
		}
		c.refreshes = make(chan struct{}, maxRefreshes)
		if c.now == nil {
			if c.now, c.arrivals = time.Now, true; clock.Moved() {
				c.now, c.arrivals = clock.Now, false
			}
		}
		c.setZones()
	})
}

// LeaveReferrals has referrals not kept that who does not desire recursion gets: a resolver below gives them to nobody
// else. It belongs before the first query.
func (c *Cache) LeaveReferrals() { c.noReferrals = true }

// Name implements plugin.Handler.
func (c *Cache) Name() string { return "cache" }

// ServeDNS implements plugin.Handler.
func (c *Cache) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	c.prepare()
	if r.Opcode != dns.OpcodeQuery || r.IsTsig() != nil { // nobody can sign again what is kept
		return plugin.NextOrFailure(c.Name(), c.Next, ctx, w, r)
	}
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil || !c.concerns(&adapter.Query) {
		if adapter != nil {
			adapter.Free()
		}
		return plugin.NextOrFailure(c.Name(), c.Next, ctx, w, r)
	}
	n := c.countsOf(ctx)
	n.requests.Inc()
	now := c.now()
	k := c.questionOf(&adapter.Query)
	e := c.lookup(&k, now)
	if e == nil {
		n.misses.Inc()
		t := c.join(ctx, &adapter.Query, &k)
		defer t.end()
		plugin.Note(ctx, "miss")
		if e = t.entry; e == nil {
			adapter.Free()
			if t.failed != nil {
				return dns.RcodeServerFailure, t.failed.err
			}
			return c.miss(ctx, w, r, &t, n)
		}
		defer adapter.Free()
		e.restoreMetadata(ctx)
		reply(&adapter.Reply, &adapter.Query, e, uint32(max(e.remaining(c.now()), 0)))
		return write(w, r, &adapter.Reply)
	}
	left := e.remaining(now)
	c.noteHit(ctx, e, left)
	if left <= 0 && c.verify {
		if rcode, err, done := c.serveVerified(ctx, w, r, adapter, &k, e, n); done {
			adapter.Free()
			return rcode, err
		}
	}
	defer adapter.Free()
	ttl := c.hit(n, e, left)
	if c.refreshDue(e, left, now) {
		c.refresh(ctx, w, r, e, n, left)
	}
	e.restoreMetadata(ctx)
	reply(&adapter.Reply, &adapter.Query, e, ttl)
	if left <= 0 && c.staleEDE {
		addEDE(&adapter.Reply, &adapter.Query, e.staleEDE())
	}
	return write(w, r, &adapter.Reply)
}

// write writes what an entry made of reply, as an answer to r.
func write(w dns.ResponseWriter, r *dns.Msg, reply *wire.Reply) (int, error) {
	if taken, err := plugin.TakeReply(w, reply, r); taken {
		return dns.RcodeSuccess, err
	}
	m, err := reply.MsgOPT(r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// ServeWire implements plugin.WireHandler.
func (c *Cache) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	c.prepare()
	if !c.concerns(q) {
		return plugin.NextWire(c.Name(), c.Next, ctx, w, q)
	}
	now := c.nowIn(q)
	k := c.questionOf(q)
	e := c.lookup(&k, now)
	if e == nil {
		return c.missWire(ctx, w, q, &k, now)
	}
	left := e.remaining(now)
	// Where nobody can ask, an old answer is better than none (RFC 8767 §5).
	if left <= 0 && c.verify && !c.givenUp(e, now) && !eventloop.AllAtWork() {
		return wire.Unpack
	}
	n := c.countsOf(ctx)
	n.requests.Inc()
	w.SetWriter(c.Name())
	if missedBefore(q, e) {
		n.misses.Inc()
		reply(w, q, e, uint32(max(left, 0)))
		return wire.Done
	}
	if c.refreshDue(e, left, now) {
		c.refreshWire(ctx, q, e, n, left)
	}
	reply(w, q, e, c.hit(n, e, left))
	if left <= 0 && c.staleEDE {
		addEDE(w, q, e.staleEDE())
	}
	return wire.Done
}

// nowIn is the time while q is served, without a look at the clock if it is known.
func (c *Cache) nowIn(q *wire.Query) time.Time {
	if c.arrivals && q.JustCame() {
		return q.Arrival
	}
	return c.now()
}

// WireSelf implements plugin.WireHandler.
func (c *Cache) WireSelf() plugin.Handler { return c }

// lookup is the entry for k that is of use at now, nil if there is none. For a query that names a network that is the
// one for the longest prefix of it (RFC 7871 §7.3.1), else one that is for everybody.
func (c *Cache) lookup(k *question, now time.Time) *entry {
	switch {
	case k.odd:
		return nil
	case !k.nets:
		return c.choose(c.negative.get(&k.key), c.positive.get(&k.key), now)
	}
	negative, positive := c.variantFor(c.negative.get(&k.key), &k.net, now), c.variantFor(c.positive.get(&k.key), &k.net, now)
	if negative != nil && positive != nil && negative.kind != kind(response.ServerError) {
		switch a, b := negative.extra.scope.net.bits, positive.extra.scope.net.bits; {
		case a > b:
			positive = nil
		case a < b:
			negative = nil
		}
	}
	if e := c.choose(negative, positive, now); e != nil {
		return e
	}
	all := k.turned()
	return c.choose(c.negative.get(&all).ifForAll(), c.positive.get(&all).ifForAll(), now)
}

// ifForAll is e if it is for clients that name a network, too, else nil.
func (e *entry) ifForAll() *entry {
	if e != nil && e.forAll {
		return e
	}
	return nil
}

// choose is the one of two entries that is to be given, nil if neither is. A denial goes before a positive answer,
// unless it is only an error, or positive ones are preferred.
func (c *Cache) choose(negative, positive *entry, now time.Time) *entry {
	if c.preferPositive {
		if good := positive.good(); c.usable(good, now) {
			return good
		}
	}
	if c.usable(negative, now) && (negative.kind != kind(response.ServerError) || !c.usable(positive, now)) {
		return negative
	}
	if c.usable(positive, now) {
		return positive
	}
	return nil
}

// useful reports whether anything of an entry may still be given at now.
func (c *Cache) useful(e *entry, now time.Time) bool {
	return c.usable(e, now) || c.preferPositive && c.usable(e.good(), now)
}

// usable reports whether an entry may be given at now.
func (c *Cache) usable(e *entry, now time.Time) bool {
	if e == nil {
		return false
	}
	left := e.remaining(now)
	return left > 0 || c.stale > 0 && -left < int(c.stale/time.Second) && !e.fetch.bogus.Load()
}

// hit counts a hit and returns the TTL of its records.
func (c *Cache) hit(n *counts, e *entry, left int) (ttl uint32) {
	e.touch()
	n.hits[classIndex(response.Type(e.kind))].Inc()
	switch {
	case left <= 0:
		n.servedStale.Inc()
		return c.staleTTL
	case c.keepTTL:
		return e.ttl
	}
	return uint32(left)
}

// reply makes w the answer that e holds.
func reply(w *wire.Reply, q *wire.Query, e *entry, ttl uint32) {
	w.Load(&e.packed, q)
	w.SetTTLs(ttl)
	w.SetFlag(wire.FlagAA, !e.nonAuthoritative) // old stub resolvers drop what is not authoritative
	if w.Flag(wire.FlagAD) && !q.DO() && !q.AD() {
		w.SetFlag(wire.FlagAD, false) // RFC 6840 §5.7
	}
	addScope(w, q, e.scopeTold())
	if e.extra != nil {
		addEDE(w, q, e.extra.ede)
	}
}

// good is the entry if it really answers, else the last one of its key that did.
func (e *entry) good() *entry {
	if e == nil || e.answers {
		return e
	}
	if e.extra != nil {
		return e.extra.lastGood
	}
	return nil
}
