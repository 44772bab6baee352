// Package cache is a map from 64-bit keys to values that holds a bounded number of them.
//
//	key ──low byte──▶ one of 256 shards, each a map of bounded size with a lock of its own
//
// A full shard makes room by dropping an arbitrary entry: no list is kept that every reader would have to write to.
// Keys are hashes, for instance of Hash, so a value must tell whether it is what was asked for.
//
// Every method may be called from any number of goroutines at the same time. Start at Cache.
package cache

import "sync"

const (
	shardCount = 256
	// minShardSize is the size of a shard in the smallest cache.
	minShardSize = 4
)

// Cache holds values of the type T. It must be made by New.
type Cache[T any] struct {
	shards [shardCount]shard[T]
}

// shard is one part of a Cache, filled up to a cache line so that neighbours' locks do not disturb each other.
type shard[T any] struct {
	mu    sync.RWMutex
	items map[uint64]T // at most size
	size  int
	_     [24]byte
}

// New returns an empty cache for about size values: each of its 256 shards holds max(size/256, 4).
func New[T any](size int) *Cache[T] {
	c := new(Cache[T])
	for i := range c.shards {
		c.shards[i].size = max(size/shardCount, minShardSize)
		c.shards[i].items = make(map[uint64]T)
	}
	return c
}

// Add stores el under key, in the place of what stood there, and tells whether another value had to go for it.
func (c *Cache[T]) Add(key uint64, el T) bool { return c.shard(key).add(key, el) }

// Get returns the value under key, and whether there is one.
func (c *Cache[T]) Get(key uint64) (T, bool) {
	s := c.shard(key)
	s.mu.RLock()
	el, ok := s.items[key]
	s.mu.RUnlock()
	return el, ok
}

// Remove removes the value under key, if there is one.
func (c *Cache[T]) Remove(key uint64) {
	s := c.shard(key)
	s.mu.Lock()
	delete(s.items, key)
	s.mu.Unlock()
}

// Len returns the number of values. While others add and remove, it is that of no single moment.
func (c *Cache[T]) Len() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.RLock()
		n += len(s.items)
		s.mu.RUnlock()
	}
	return n
}

// Walk calls f for every value, one shard after the other, with the shard's values and the key. f may read, replace
// and delete values in the map, which is its own until it returns. If it returns false, the rest of the shard is
// left out. The shard is locked meanwhile: f must not wait, nor call the cache.
func (c *Cache[T]) Walk(f func(map[uint64]T, uint64) bool) {
	for i := range c.shards {
		c.shards[i].walk(f)
	}
}

func (c *Cache[T]) shard(key uint64) *shard[T] { return &c.shards[key%shardCount] }

func (s *shard[T]) add(key uint64, el T) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	evicted := false
	if len(s.items) >= s.size {
		if _, replaces := s.items[key]; !replaces {
			s.evict()
			evicted = true
		}
	}
	s.items[key] = el
	return evicted
}

// evict removes the first entry that the map's iteration, which begins at a random place, comes upon.
func (s *shard[T]) evict() {
	for key := range s.items {
		delete(s.items, key)
		return
	}
}

func (s *shard[T]) walk(f func(map[uint64]T, uint64) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.items {
		if !f(s.items, key) {
			return
		}
	}
}
