package cache

import (
	"sync"
	"time"
)

// What has ended is taken out by a sweep that goes through all shards within about a minute, some at a time.
const (
	sweepPause = 10 * time.Second
	sweepPart  = (shards + 5) / 6 // shards that are swept at a time
)

// sweeper sweeps a cache's stores, from startup to shutdown. It has a timer and no goroutine: there may be thousands of caches.
type sweeper struct {
	mu    sync.Mutex
	timer *time.Timer // nil when it is over
	from  int         // the next shard
}

// startSweeping begins to sweep every pause.
func (c *Cache) startSweeping(pause time.Duration) {
	c.prepare()
	s := new(sweeper)
	c.sweeper = s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(pause, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.timer == nil {
			return
		}
		c.sweep(s.from, sweepPart)
		s.from = (s.from + sweepPart) % shards
		s.timer.Reset(pause)
	})
}

// stopSweeping ends that, and returns when it has ended.
func (c *Cache) stopSweeping() {
	s := c.sweeper
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	s.timer, c.sweeper = nil, nil
}

// sweep takes what is of no use any more out of n shards of both stores.
func (c *Cache) sweep(from, n int) {
	now := c.now()
	useless := func(e *entry) bool { return !c.useful(e, now) && !e.failedBefore(now) }
	gone := 0
	for i := range n {
		at := (from + i) % shards
		gone += c.positive.sweep(at, useless) + c.negative.sweep(at, useless)
	}
	if gone > 0 {
		c.showEntries()
	}
}

// sweep takes the useless entries out of one shard, and variants that are useless out of the others, and returns how many answers went.
func (s *store) sweep(at int, useless func(*entry) bool) (gone int) {
	sh := s.shard(uint64(at))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.table.Load()
	for e := range t.all {
		left := e
		if len(e.variants()) > 0 {
			left = e.without(useless)
		} else if useless(e) {
			left = nil
		}
		switch {
		case left == e:
			continue
		case left == nil:
			sh.drop(e)
		default:
			sh.replace(e, left)
		}
		s.exchange(left, e)
		gone += int(e.weight())
		if left != nil {
			gone -= int(left.weight())
		}
	}
	if len(t.slots) > 16 && sh.live*16 < len(t.slots) {
		sh.rebuild()
	}
	return gone
}
