package cache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// flights are the misses under way. Who misses the same waits for what the first one waits for, in
// either lane, and then looks the answer up.
//
//	claim ──▶ the first one asks the plugins below ──┬─ they answered ───────────▶ over, others look the answer up
//	                                                  └─ it parks on an exchange ──▶ share: others park on the same one
//
// Nobody depends on the first one: what is waited for ends whatever becomes of it.
type flights struct {
	shards [16]flightShard
}

type flightShard struct {
	mu  sync.Mutex
	all map[uint64]*flight // by flightHash
}

// flight is one miss under way.
type flight struct {
	question
	ask     missEnding
	shard   *flightShard
	scratch [48]byte // for most names

	// guarded by shard.mu
	ends   eventloop.Exchange // what others wait for: ask, then what the first one is parked on
	shared bool               // somebody was told of ask, and may keep it
}

var freeFlights = sync.Pool{New: func() any { return new(flight) }}

// missEnding is what others wait for while the first one asks the plugins below.
type missEnding struct {
	eventloop.Ending
	failed *missFailure // settled at the end; nil: what came of it is to be looked up
}

// missFailure is that the plugins below have failed, without an answer. It holds for all who have waited for them.
type missFailure struct {
	err error
	old bool // there is an old answer, which is to be given
}

// failure is how it has ended for those who have no old answer, nil if not with a failure.
func (m *missEnding) failure() *missFailure {
	if m.failed == nil || m.failed.old {
		return nil
	}
	return m.failed
}

// flightHash is the hash of all of a question.
func (k *question) flightHash() uint64 { return k.hash ^ k.net.hash() }

// claim makes the caller the first one to miss k, who calls over, or share on what it gets; or it says what to wait for. Both
// are nil in the rare case that neither can be told. k is not kept.
func (f *flights) claim(k *question) (mine *flight, others eventloop.Exchange) {
	hash := k.flightHash()
	s := &f.shards[k.hash%uint64(len(f.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if fl := s.all[hash]; fl != nil {
		if fl.same(k) {
			fl.shared = true
			return nil, fl.ends
		}
		return nil, nil
	}
	if s.all == nil {
		s.all = map[uint64]*flight{}
	}
	fl := freeFlights.Get().(*flight)
	fl.question, fl.shard, fl.ends = *k, s, &fl.ask
	fl.name = append(fl.scratch[:0], k.name...)
	s.all[hash] = fl
	return fl, nil
}

// share lets others wait for x, and is the last that the first one asks of the flight.
func (fl *flight) share(x eventloop.Exchange) {
	fl.shard.mu.Lock()
	fl.ends = x
	shared := fl.shared
	fl.shard.mu.Unlock()
	if shared {
		fl.ask.End()
	}
	x.Then(fl)
}

// Resume ends a flight that is shared: it implements eventloop.Resumer.
func (fl *flight) Resume() { fl.ResumeIn(nil) }

// ResumeIn implements eventloop.LoopResumer.
func (fl *flight) ResumeIn(*eventloop.Loop) (done bool) {
	if fl.leave() {
		return false
	}
	fl.free()
	return true
}

// leave makes the next one to miss the same a first one again, and reports whether anybody else has seen the flight.
func (fl *flight) leave() (shared bool) {
	fl.shard.mu.Lock()
	defer fl.shard.mu.Unlock()
	delete(fl.shard.all, fl.flightHash())
	return fl.shared
}

// over ends a flight that is not shared.
func (fl *flight) over(failed *missFailure) {
	if fl.leave() {
		fl.ask.failed = failed
		fl.ask.End()
		return
	}
	fl.free()
}

// free lets a flight be used again that nobody else has seen, and so has not ended.
func (fl *flight) free() {
	fl.question, fl.shard, fl.ends = question{}, nil, nil
	freeFlights.Put(fl)
}

// answeredAtOnce remembers questions that the plugins below have answered at once, in the loop, each in the one place that it can have. They need no
// flight: if such an answer is not kept, each query gets its own.
type answeredAtOnce [256]atomic.Uint64

func (p *answeredAtOnce) has(k *question) bool { return p[k.hash%uint64(len(p))].Load() == k.hash }
func (p *answeredAtOnce) add(k *question)      { p[k.hash%uint64(len(p))].Store(k.hash) }
func (p *answeredAtOnce) drop(k *question)     { p[k.hash%uint64(len(p))].CompareAndSwap(k.hash, 0) }

// unshared are the options of a query that may change the answer, or ask for something in it, and are not in the question. Cookies, keepalive and padding
// concern the way between two neighbours only.
const unshared = ^(wire.HasECS | wire.HasCookie | wire.HasKeepalive | wire.HasPadding)

// shares reports whether the answer to q, which asks k, may be another query's. HINFO is what loop finds loops with: its probe must come round.
func shares(q *wire.Query, k *question) bool {
	return q.Type() != dns.TypeHINFO && q.RD() && q.EDNS().Set&unshared == 0 && q.EDNS().Flags&0x7FFF == 0 && !k.odd
}

// inner reports whether a query is asked by the server itself, for another query: that may be the first one.
func inner(ctx context.Context) bool {
	n, ok := ctx.Value(plugin.LoopKey{}).(int)
	return ok && n > 0
}

// longest is how long a miss waits for another one at most.
const longest = 6 * time.Second

// turn is what becomes of a miss in the message lane: it has waited for another one, or is one that others wait for.
type turn struct {
	entry  *entry       // that the other one has left in the cache, if any
	failed *missFailure // how that one has ended, or this one
	mine   *flight      // nil: nobody waits for this one
}

// end lets those go on who wait.
func (t *turn) end() {
	if t.mine != nil {
		t.mine.over(t.failed)
	}
}

// join waits for a miss of k that is under way. If there is none, this becomes one that others wait for, until end is called.
func (c *Cache) join(ctx context.Context, q *wire.Query, k *question) (t turn) {
	if !shares(q, k) || inner(ctx) {
		return t
	}
	var timer *time.Timer
	for {
		mine, others := c.flights.claim(k)
		switch {
		case mine != nil:
			return turn{mine: mine}
		case others == nil:
			return t
		case timer == nil:
			timer = time.NewTimer(longest)
			defer timer.Stop()
		}
		if !waitFor(ctx, others, timer) {
			return t
		}
		if e := c.lookup(k, c.now()); e != nil {
			return turn{entry: e}
		}
		if a, ok := others.(*missEnding); ok && c.flights.isShared(k, a) {
			continue
		} else if ok {
			return turn{failed: a.failure()}
		}
		return turn{entry: c.await(k)}
	}
}

// waitFor waits for x, and reports false if the time or the query is over before it has ended.
func waitFor(ctx context.Context, x eventloop.Exchange, timer *time.Timer) bool {
	woken := make(eventloop.Waiter)
	x.Then(woken)
	select {
	case <-woken:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// isShared reports whether the flight of k goes on after a.
func (f *flights) isShared(k *question, a *missEnding) bool {
	s := &f.shards[k.hash%uint64(len(f.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	fl := s.all[k.flightHash()]
	return fl != nil && &fl.ask == a
}

// await is what is kept for k by the first one, which is told of the end of its exchange no later than others, or just after them.
func (c *Cache) await(k *question) *entry {
	for _, pause := range []time.Duration{time.Millisecond, 4 * time.Millisecond, 16 * time.Millisecond} {
		time.Sleep(pause)
		if e := c.lookup(k, c.now()); e != nil {
			return e
		}
	}
	return nil
}
