package cache

import (
	"sync"
	"sync/atomic"
)

// store keeps entries by key. Readers take no lock: a shard's table is a published array of
// pointers. Writers lock their shard.
//
// The number of entries is bounded for the store, and the octets for the process (budget).
// What goes is chosen by S3-FIFO (Yang et al., SOSP 2023): new entries go through a small queue, and only those that were
// asked for again get into the main one, so a scan of names that are asked once does not push out the popular ones.
type store struct {
	capacity int64
	budget   *budget
	n        atomic.Int64 // entries
	shards   [shards]shard
}

const (
	shards      = 64
	minCapacity = 1024
)

// budget bounds the octets of all stores that share it.
type budget struct {
	limit int64
	used  atomic.Int64
}

func newStore(capacity int, b *budget) *store {
	s := &store{capacity: int64(max(capacity, minCapacity)), budget: b}
	for i := range s.shards {
		s.shards[i].table.Store(newTable(16))
	}
	return s
}

func (s *store) shard(hash uint64) *shard { return &s.shards[hash%shards] }

// get is the entry of k, nil if there is none.
func (s *store) get(k *key) *entry { return s.shard(k.hash).table.Load().find(k) }

// len is the number of entries.
func (s *store) len() int { return int(s.n.Load()) }

// add stores e, in the place of an older entry of its key, and returns how many others
// had to go for it.
func (s *store) add(e *entry) (evicted int) {
	sh := s.shard(e.hash)
	sh.mu.Lock()
	old := sh.insert(e)
	if old == nil {
		s.n.Add(1)
	} else {
		s.budget.used.Add(-old.size())
	}
	s.budget.used.Add(e.size())
	sh.mu.Unlock()

	for i := e.hash; s.full() && i < e.hash+shards; {
		sh := s.shard(i)
		sh.mu.Lock()
		victim := sh.evict(e)
		sh.mu.Unlock()
		if victim == nil {
			i++ // nothing to take in this shard
			continue
		}
		s.n.Add(-1)
		s.budget.used.Add(-victim.size())
		evicted++
	}
	return evicted
}

func (s *store) full() bool {
	return s.n.Load() > s.capacity || s.budget.used.Load() > s.budget.limit
}

// remove takes the entry of k out.
func (s *store) remove(k *key) {
	sh := s.shard(k.hash)
	if sh.table.Load().find(k) == nil {
		return
	}
	sh.mu.Lock()
	e := sh.table.Load().find(k)
	if e != nil {
		sh.drop(e)
		s.n.Add(-1)
		s.budget.used.Add(-e.size())
	}
	sh.mu.Unlock()
}

// clear gives back what the store holds; it is not used any more.
func (s *store) clear() {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for _, q := range []*queue{&sh.small, &sh.main} {
			for e := q.pop(); e != nil; e = q.pop() {
				s.n.Add(-1)
				s.budget.used.Add(-e.size())
			}
		}
		sh.table.Store(newTable(16))
		sh.live = 0
		sh.mu.Unlock()
	}
}

// shard is a part of a store with a lock of its own.
type shard struct {
	table atomic.Pointer[table] // readers search it without the lock

	mu    sync.Mutex // writers only; guards what follows and changes of the table
	small queue      // entries that were not asked for again so far
	main  queue      // those that were
	ghost ghosts     // keys that left the small queue
	live  int        // entries
}

// insert puts e in and returns the entry of the same key that it replaces.
func (sh *shard) insert(e *entry) (old *entry) {
	t := sh.table.Load()
	if old = t.find(&e.key); old != nil {
		e.used.Store(old.used.Load())
		t.replace(old, e)
		old.queue.replace(old, e)
		return old
	}
	sh.live++
	if t.filled >= len(t.slots)/2 {
		t = t.rebuilt(sh.live)
		sh.table.Store(t)
	}
	t.insert(e)
	if sh.ghost.take(e.hash) {
		sh.main.push(e)
	} else {
		sh.small.push(e)
	}
	return nil
}

// drop takes e out of the table and its queue.
func (sh *shard) drop(e *entry) {
	if e.queue != nil {
		e.queue.remove(e)
	}
	sh.live--
	sh.table.Load().replace(e, removed)
}

// evict chooses an entry other than keep, takes it out, and returns it; nil if there is none.
func (sh *shard) evict(keep *entry) *entry {
	if sh.live == 0 || sh.live == 1 && keep.queue != nil && sh.table.Load().find(&keep.key) == keep {
		return nil
	}
	for {
		if n := sh.small.n; n > 0 && (n*10 > sh.live || sh.main.n == 0) {
			e := sh.small.pop()
			if e.used.Load() > 0 || e == keep {
				e.used.Store(0)
				sh.main.push(e)
				continue
			}
			sh.ghost.add(e.hash, sh.live)
			sh.drop(e)
			return e
		}
		e := sh.main.pop() // each round takes one of its hits away, so this ends
		if n := e.used.Load(); n > 0 || e == keep {
			e.used.Store(max(n, 1) - 1)
			sh.main.push(e)
			continue
		}
		sh.drop(e)
		return e
	}
}
