package cache

import (
	"time"
)

// What has ended is taken out by a sweep that goes through all shards within about a minute, some at a time.
const (
	sweepPause = 10 * time.Second
	sweepPart  = (shards + 5) / 6 // shards that are swept at a time
)

// sweeper is the goroutine that sweeps a cache's stores, from startup to shutdown.
type sweeper struct {
	stop, stopped chan struct{}
}

// startSweeping begins to sweep every pause.
func (c *Cache) startSweeping(pause time.Duration) {
	c.prepare()
	s := &sweeper{make(chan struct{}), make(chan struct{})}
	c.sweeper = s
	go func() {
		defer close(s.stopped)
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for from := 0; ; from = (from + sweepPart) % shards {
			select {
			case <-s.stop:
				return
			case <-ticker.C:
				c.sweep(from, sweepPart)
			}
		}
	}()
}

// stopSweeping ends that, and returns when it has ended.
func (c *Cache) stopSweeping() {
	if c.sweeper != nil {
		close(c.sweeper.stop)
		<-c.sweeper.stopped
		c.sweeper = nil
	}
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
	sh := &s.shards[at]
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
