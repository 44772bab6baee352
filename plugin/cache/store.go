package cache

import (
	"sync"
	"sync/atomic"
)

// store keeps entries by key. Readers take no lock: a shard's table is a published array of
// pointers. Writers lock their shard.
//
// The number of entries is bounded for the store, and the octets for the process (budget). What goes is chosen in costclass.go.
type store struct {
	capacity int64
	budget   *budget
	n        atomic.Int64                  // answers
	octets   *atomic.Int64                 // of the budget, that its entries use
	counts   atomic.Pointer[counts]        // where evictions are counted; nil until something was kept
	class    int                           // in counts
	large    atomic.Bool                   // it was, when somebody looked; see isLarge
	shards   [shards]atomic.Pointer[shard] // nil before the first entry
}

const (
	shards      = 64
	minCapacity = 1024
)

func newStore(capacity int, b *budget, class int) *store {
	s := &store{capacity: int64(max(capacity, minCapacity)), budget: b, octets: new(atomic.Int64), class: class}
	b.join(s)
	return s
}

// A Corefile may have ten thousand caches, most of which are asked for little: a shard is made for its first entry. Until then nothing is in it, and when the
// store has ended before, nothing will be.
var nothing, ended = newShard(false), newShard(true)

func newShard(closed bool) *shard {
	sh := &shard{closed: closed}
	sh.table.Store(noEntries)
	return sh
}

// shard is where an entry with that hash is, if there is one. Nothing may be put there.
func (s *store) shard(hash uint64) *shard {
	if sh := s.shards[hash%shards].Load(); sh != nil {
		return sh
	}
	return nothing
}

// room is the shard to put an entry with that hash into.
func (s *store) room(hash uint64) *shard {
	at := &s.shards[hash%shards]
	if at.Load() == nil {
		at.CompareAndSwap(nil, newShard(false))
	}
	return at.Load()
}

// get is the entry of k, nil if there is none.
func (s *store) get(k *key) *entry { return s.shard(k.hash).table.Load().find(k) }

// len is the number of answers.
func (s *store) len() int { return int(s.n.Load()) }

// put stores what change makes of the entry that k has, nil if it has none, and lets others go if that is too much. If change makes
// nil, the entry is taken out. It is called with the lock of the shard.
func (s *store) put(k *key, change func(old *entry) *entry) {
	sh := s.room(k.hash)
	sh.mu.Lock()
	if sh.closed {
		sh.mu.Unlock()
		return
	}
	old := sh.table.Load().find(k)
	e := change(old)
	switch {
	case e == old:
		sh.mu.Unlock()
		return
	case e == nil:
		sh.drop(old)
	case old != nil:
		sh.replace(old, e)
	default:
		sh.insert(e)
	}
	var victim *entry
	if e != nil && old == nil && s.n.Load() >= s.capacity { // as it mostly is once it has filled
		victim = sh.evict(e)
	}
	s.exchange(e, old, victim)
	sh.mu.Unlock()
	if e == nil {
		return
	}
	if victim != nil {
		s.evicted(victim)
	}
	for s.n.Load() > s.capacity && s.letGo(k.hash, e) {
	}
	for s.budget.over() {
		if largest := s.budget.largest(); largest == nil || !largest.letGo(k.hash, e) {
			break
		}
	}
}

// letGo takes out one entry, not keep, and reports whether there was one to take. It begins with the shard of hash.
func (s *store) letGo(hash uint64, keep *entry) bool {
	for i := range uint64(shards) {
		sh := s.shard(hash + i)
		sh.mu.Lock()
		victim := sh.evict(keep)
		sh.mu.Unlock()
		if victim != nil {
			s.exchange(nil, victim)
			s.evicted(victim)
			return true
		}
	}
	return false
}

// evicted tells that an entry had to give way.
func (s *store) evicted(e *entry) {
	if c := s.counts.Load(); c != nil {
		c.evictions[s.class].Add(float64(e.weight()))
	}
}

// tells makes n what evictions are counted in.
func (s *store) tells(n *counts) {
	if s.counts.Load() != n {
		s.counts.Store(n)
	}
}

// exchange counts that an entry came, and others went. Those that are nil do not count.
func (s *store) exchange(came *entry, went ...*entry) {
	var n, octets int64
	if came != nil {
		n, octets = came.weight(), came.size()
	}
	for _, e := range went {
		if e != nil {
			n, octets = n-e.weight(), octets-e.size()
		}
	}
	if n != 0 {
		s.n.Add(n)
	}
	s.octets.Add(octets)
	s.budget.used.Add(octets)
}

// clear gives back what the store holds; it takes nothing any more.
func (s *store) clear() {
	for i := range s.shards {
		s.shards[i].CompareAndSwap(nil, ended)
		sh := s.shards[i].Load()
		sh.mu.Lock()
		for e := range sh.table.Load().all {
			s.exchange(nil, e)
		}
		sh.table.Store(noEntries)
		sh.live, sh.taken, sh.classes, sh.closed = 0, 0, [costs]costClass{}, true
		sh.mu.Unlock()
	}
	s.budget.leave(s)
}

// shard is a part of a store with a lock of its own.
type shard struct {
	table atomic.Pointer[table] // readers search it without the lock
	_     [56]byte              // what writers change is not in the cache line that readers read

	mu      sync.Mutex       // writers only; guards what follows and changes of the table
	classes [costs]costClass // entries, by what they cost
	live    int              // entries in all
	taken   int              // slots of the table that are not empty

	closed bool     // nothing is stored any more
	_      [71]byte // the next shard begins another line
}

// insert puts e in, whose key is not there.
func (sh *shard) insert(e *entry) {
	l := &sh.classes[e.cost]
	t := sh.table.Load()
	if sh.taken >= len(t.slots)*5/8 {
		t = sh.rebuild()
	}
	if t.insert(e) {
		sh.taken++
	}
	sh.live++
	l.live++
	sh.enqueue(e, l.ghost.take(e.hash))
}

// rebuild makes a table without marks, with room for more.
func (sh *shard) rebuild() *table {
	t := sh.table.Load().rebuilt(sh.live)
	sh.taken = sh.live
	sh.table.Store(t)
	return t
}

// replace puts e into the place of old, an entry of the same key.
func (sh *shard) replace(old, e *entry) {
	e.used.Store(old.used.Load())
	sh.table.Load().replace(old, e)
	if e.inMain = old.inMain; e.cost != old.cost {
		sh.classes[old.cost].live--
		sh.classes[e.cost].live++
		sh.enqueue(e, e.inMain)
	}
}

// drop takes e out.
func (sh *shard) drop(e *entry) {
	sh.live--
	sh.classes[e.cost].live--
	sh.taken -= sh.table.Load().remove(e)
}
