package store

import (
	"math/bits"
	"slices"
	"sync"
)

const shards = 64

// shelf is a map that is bounded: by the sum of what its values cost. What was used least goes first.
type shelf[K comparable, V any] struct {
	hash   func(K) uint32
	cost   func(K, V) int64 // of a value, which does not change
	shards [shards]shard[K, V]
}

// shard is a table of chains that grows by one chain at a time (linear hashing): none of what is kept is ever moved by
// more than a link, and nobody waits for a table to be made anew.
type shard[K comparable, V any] struct {
	mu     sync.Mutex
	chains []*slot[K, V]
	n      int
	used   slot[K, V] // head of the ring: next is what was used last
	cost   int64
	limit  int64
}

type slot[K comparable, V any] struct {
	key        K
	value      V
	cost       int64       // of the value: what goes first is not to be read for it
	next, prev *slot[K, V] // in the ring
	below      *slot[K, V] // in the chain
}

func (s *shelf[K, V]) init(limit int64, hash func(K) uint32, cost func(K, V) int64) {
	s.hash, s.cost = hash, cost
	for i := range s.shards {
		h := &s.shards[i]
		h.chains, h.limit = make([]*slot[K, V], 1), max(limit/shards, 1)
		h.used.next, h.used.prev = &h.used, &h.used
	}
}

// at is the shard and the chain of a hash; the shard's lock is held.
func (s *shelf[K, V]) at(hash uint32) (*shard[K, V], **slot[K, V]) {
	h := &s.shards[hash%shards]
	h.mu.Lock()
	return h, h.chain(hash)
}

func (h *shard[K, V]) chain(hash uint32) **slot[K, V] { return &h.chains[chainOf(hash, len(h.chains))] }

// chainOf is which of n chains a hash belongs to: with as many of its bits as n needs, or one less where the chain of
// these is not there yet.
func chainOf(hash uint32, n int) int {
	i, all := hash/shards, powerOf2(n)
	if i &= all - 1; i >= uint32(n) {
		i &= all/2 - 1
	}
	return int(i)
}

// powerOf2 is the least power of two that is not below n.
func powerOf2(n int) uint32 { return 1 << bits.Len32(uint32(n-1)) }

// grow makes one more chain, out of the one that had its part so far.
func (s *shelf[K, V]) grow(h *shard[K, V]) {
	n := len(h.chains)
	h.chains = append(h.chains, nil)
	from, to := &h.chains[chainOf(uint32(n)*shards, n)], &h.chains[n]
	for *from != nil {
		o := *from
		if chainOf(s.hash(o.key), n+1) != n {
			from = &o.below
			continue
		}
		*from, o.below = o.below, *to
		*to = o
	}
}

func (o *slot[K, V]) unlink() { o.next.prev, o.prev.next = o.prev, o.next }

func (h *shard[K, V]) front(o *slot[K, V]) {
	o.next, o.prev = h.used.next, &h.used
	o.next.prev, h.used.next = o, o
}

// use makes o what was used last.
func (h *shard[K, V]) use(o *slot[K, V]) {
	if h.used.next != o {
		o.unlink()
		h.front(o)
	}
}

// in is the slot of k in a chain, nil if there is none.
func in[K comparable, V any](chain *slot[K, V], k K) *slot[K, V] {
	for chain != nil && chain.key != k {
		chain = chain.below
	}
	return chain
}

// get is the value of k.
func (s *shelf[K, V]) get(k K) (v V, ok bool) {
	h, chain := s.at(s.hash(k))
	defer h.mu.Unlock()
	o := in(*chain, k)
	if o == nil {
		return v, false
	}
	h.use(o)
	return o.value, true
}

// firstOf is the value of the first of some keys, which are of one hash, that is good.
func (s *shelf[K, V]) firstOf(keys []K, good func(K, V) bool) (v V, ok bool) {
	h, chain := s.at(s.hash(keys[0]))
	defer h.mu.Unlock()
	var first *slot[K, V]
	for o := *chain; o != nil && len(keys) > 0; o = o.below {
		if i := slices.Index(keys, o.key); i >= 0 && good(o.key, o.value) {
			first, keys = o, keys[:i]
		}
	}
	if first == nil {
		return v, false
	}
	h.use(first)
	return first.value, true
}

// update gives k the value that f makes of the present one, unless f reports false.
func (s *shelf[K, V]) update(k K, f func(old V, ok bool) (v V, keep bool)) {
	h, chain := s.at(s.hash(k))
	defer h.mu.Unlock()
	o := in(*chain, k)
	var old V
	if o != nil {
		old = o.value
	}
	v, keep := f(old, o != nil)
	if !keep {
		return
	}
	if o == nil {
		o = &slot[K, V]{key: k, below: *chain}
		*chain = o
		if h.n++; h.n > len(h.chains) {
			s.grow(h)
		}
	} else {
		o.unlink()
		h.cost -= o.cost
	}
	o.value, o.cost = v, s.cost(k, v)
	h.cost += o.cost
	h.front(o)
	for h.cost > h.limit && h.used.prev != o {
		s.drop(h, h.used.prev)
	}
}

// set gives k a value.
func (s *shelf[K, V]) set(k K, v V) { s.update(k, func(V, bool) (V, bool) { return v, true }) }

func (s *shelf[K, V]) drop(h *shard[K, V], o *slot[K, V]) {
	o.unlink()
	h.cost -= o.cost
	h.n--
	link := h.chain(s.hash(o.key))
	for *link != o {
		link = &(*link).below
	}
	*link = o.below
}

// remove forgets k.
func (s *shelf[K, V]) remove(k K) {
	h, chain := s.at(s.hash(k))
	defer h.mu.Unlock()
	if o := in(*chain, k); o != nil {
		s.drop(h, o)
	}
}

// removeIf forgets what f reports true for.
func (s *shelf[K, V]) removeIf(f func(K, V) bool) (n int) {
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.Lock()
		for o, next := h.used.next, (*slot[K, V])(nil); o != &h.used; o = next {
			if next = o.next; f(o.key, o.value) {
				s.drop(h, o)
				n++
			}
		}
		h.mu.Unlock()
	}
	return n
}

// total is the number of values and what they cost.
func (s *shelf[K, V]) total() (n int, cost int64) {
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.Lock()
		n += h.n
		cost += h.cost
		h.mu.Unlock()
	}
	return n, cost
}
