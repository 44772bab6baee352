package cache

import (
	"bytes"
	"context"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// fits reports whether an entry is meant by m.
func (e *entry) fits(m *status.Match) bool {
	if m.Type != 0 && m.Type != e.qtype {
		return false
	}
	if m.Below {
		return wire.Below(e.packed.Key(), m.Name)
	}
	return bytes.Equal(e.packed.Key(), m.Name)
}

// snapshot is the entries of a store that m fits. It is taken shard by shard.
func (s *store) snapshot(m *status.Match) (all []*entry) {
	for i := range uint64(shards) {
		sh := s.shard(i)
		sh.mu.Lock()
		for e := range sh.table.Load().all {
			if e.fits(m) {
				all = append(all, e)
			}
		}
		sh.mu.Unlock()
	}
	return all
}

// CacheEntries implements status.Cache.
func (c *Cache) CacheEntries(m status.Match, f func(status.CacheEntry) bool) {
	c.prepare()
	for _, s := range []*store{c.positive, c.negative} {
		for _, e := range s.snapshot(&m) {
			answers := e.variants()
			if len(answers) == 0 {
				answers = []*entry{e}
			}
			for _, a := range answers {
				if !f(c.statusOf(a)) {
					return
				}
			}
		}
	}
}

// statusOf is what there is to tell of an answer.
func (c *Cache) statusOf(e *entry) status.CacheEntry {
	out := status.CacheEntry{
		Name: wire.Text(e.packed.Key()), Type: dns.Type(e.qtype).String(), Class: dns.Class(e.qclass).String(),
		Rcode: rcode.ToString(e.packed.Rcode()), Answer: e.packed.Count(wire.Answer), TTL: e.remaining(c.now()),
		DO: e.do, CD: e.cd, Octets: e.size(),
	}
	if e.isVariant() {
		out.Network = e.network().String()
	}
	return out
}

// CacheFlush implements status.Cache. Answers that are under way are handed on, but not kept, whatever they are to.
func (c *Cache) CacheFlush(m status.Match) (n int) {
	c.prepare()
	c.flushed.Store(int64(time.Since(loaded)))
	for _, s := range []*store{c.positive, c.negative} {
		for _, e := range s.snapshot(&m) {
			k := e.key()
			s.put(&k, func(old *entry) *entry {
				if old != nil {
					n += int(old.weight())
				}
				return nil
			})
		}
	}
	return n
}

// loaded is the origin of flushes' times, by the monotonic clock: what came first is told, and not how old it is.
var loaded = time.Now()

// flushedAfter reports whether a flush has come at that time or later.
func (s *stores) flushedAfter(t time.Time) bool {
	at := s.flushed.Load()
	return at != 0 && !t.IsZero() && at >= int64(t.Sub(loaded))
}

// CacheStatus implements status.Cache.
func (c *Cache) CacheStatus() status.CacheStatus {
	c.prepare()
	zones := c.Zones
	if len(zones) == 0 {
		zones = []string{"."}
	}
	return status.CacheStatus{
		Zones: zones, View: c.view, Answers: c.positive.len(), Denials: c.negative.len(),
		Octets: c.positive.octets.Load() + c.negative.octets.Load(), MaxOctets: c.positive.budget.limit.Load(),
	}
}

// noteHit tells who explains a query of the answer that was found, which has left seconds to live.
func (c *Cache) noteHit(ctx context.Context, e *entry, left int) {
	if plugin.TrailFrom(ctx) == nil {
		return
	}
	which := Success
	if !e.answers {
		which = Denial
	}
	if left <= 0 {
		plugin.Note(ctx, "hit (%s), stale: its TTL ended %d s ago", which, -left)
		return
	}
	plugin.Note(ctx, "hit (%s), %d s of its TTL of %d left", which, left, e.ttl)
}
