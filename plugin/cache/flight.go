package cache

import (
	"context"
	"sync"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// flights are the misses under way. Who misses the same waits for what the first one waits for, in
// either lane, and then looks the answer up.
//
// Nobody depends on the first one: what is waited for ends whatever becomes of it.
type flights struct {
	shards [16]flightShard
}

type flightShard struct {
	mu  sync.Mutex
	all map[uint64]*flight // by key.hash
}

// flight is one miss under way.
type flight struct {
	key
	ends  wire.Exchange
	shard *flightShard
}

func (f *flights) shard(k *key) *flightShard { return &f.shards[k.hash%uint64(len(f.shards))] }

// of is what the miss of k that is under way waits for, nil if there is none.
func (f *flights) of(k *key) wire.Exchange {
	s := f.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if fl := s.all[k.hash]; fl != nil && fl.is(k) {
		return fl.ends
	}
	return nil
}

// add makes others that miss k wait for x, unless they wait for something already. k is not kept.
func (f *flights) add(k *key, x wire.Exchange) {
	s := f.shard(k)
	s.mu.Lock()
	if s.all == nil {
		s.all = map[uint64]*flight{}
	}
	if s.all[k.hash] != nil {
		s.mu.Unlock()
		return
	}
	fl := &flight{key: *k, ends: x, shard: s}
	fl.name = append([]byte(nil), k.name...)
	s.all[k.hash] = fl
	s.mu.Unlock()
	x.Then(fl)
}

// Resume ends the flight: it implements wire.Resumer.
func (fl *flight) Resume() {
	fl.shard.mu.Lock()
	delete(fl.shard.all, fl.hash)
	fl.shard.mu.Unlock()
}

// shares reports whether the answer to q may be another query's. HINFO is what loop finds loops with: its probe must come
// round. Options may change the answer, or ask for something in it.
func shares(q *wire.Query) bool {
	return q.Type() != dns.TypeHINFO && q.RD() && q.EDNS().Set == 0 && q.EDNS().Flags&0x7FFF == 0
}

// inner reports whether a query is asked by the server itself, for another query: that may be the first one.
func inner(ctx context.Context) bool {
	n, ok := ctx.Value(dnsserver.LoopKey{}).(int)
	return ok && n > 0
}

// longest is how long a miss waits for another one at most.
const longest = 6 * time.Second

// join waits for a miss of k that is under way, and returns what it left in the cache, if anything. If there is none, this
// becomes one that others wait for, until end is called.
func (c *Cache) join(ctx context.Context, q *wire.Query, k *key) (e *entry, end func()) {
	if !shares(q) || inner(ctx) {
		return nil, func() {}
	}
	x := c.flights.of(k)
	if x == nil {
		run := new(wire.Ending)
		c.flights.add(k, run)
		return nil, run.End
	}
	woken := make(waiter)
	x.Then(woken)
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-woken:
		e = c.lookup(k, c.now())
	case <-timer.C:
	case <-ctx.Done():
	}
	return e, func() {}
}

// waiter is a goroutine that waits for an exchange.
type waiter chan struct{}

// Resume implements wire.Resumer.
func (w waiter) Resume() { close(w) }
