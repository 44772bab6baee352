// Package store keeps what a resolver has learned: RRsets and denials with their rank, delegations, failures, and
// what is known of servers. It is made for a validator to stand above, too, so that nothing is kept twice.
//
//	reply ─▶ scrubbed ─┬─▶ RRsets       name, type ─▶ Entry: an RRset or a denial, with rank and state
//	                   ├─▶ Delegations  zone ─▶ Delegation: servers as the parent tells them, with glue
//	                   ├─▶ Failures     name, type ─▶ until when nobody is asked (RFC 9520)
//	                   └─▶ Servers      address ─▶ Server: round trips, EDNS, lameness
//
// Nothing here reads a clock: the time is an argument. All is bounded in octets or entries, what was used least
// goes first, and all may be used by any number of goroutines. What is kept never changes, but for Servers; it is
// replaced. Start at Stores.
package store

import (
	"hash/maphash"
	"net/netip"
	"sync"
)

// Time is nanoseconds since 1970, by the clock that TTLs are judged by.
type Time int64

// Second is a second.
const Second Time = 1e9

// After is the time so many seconds later.
func (t Time) After(seconds uint32) Time { return t + Time(seconds)*Second }

// Left is how many whole seconds there are from now to t, 0 if it is over.
func (t Time) Left(now Time) uint32 {
	if t <= now {
		return 0
	}
	return uint32(min((t-now+Second/2)/Second, 1<<31-1))
}

// Stores is all that a resolver has learned.
type Stores struct {
	RRsets      RRsets
	Delegations Delegations
	Failures    Failures
	Servers     Servers
}

// New is stores of so many octets for records, and so many server addresses.
func New(octets int64, servers int) *Stores {
	s := &Stores{}
	s.RRsets.shelf.init(octets/4*3, func(k key, e *Entry) int64 { return e.size() + int64(len(k.name)) })
	s.Delegations.shelf.init(octets/16*3, func(_ string, d *Delegation) int64 { return d.size() })
	s.Failures.shelf.init(octets/16, func(k key, f Failure) int64 { return int64(160 + len(k.name) + len(f.Text)) })
	s.Servers.shelf.init(int64(servers), func(netip.AddrPort, *Server) int64 { return 1 })
	return s
}

const shards = 64

// shelf is a map that is bounded: by the sum of what its values cost. What was used least goes first.
type shelf[K comparable, V any] struct {
	seed   maphash.Seed
	cost   func(K, V) int64 // of a value, which does not change
	shards [shards]shard[K, V]
}

type shard[K comparable, V any] struct {
	mu    sync.Mutex
	all   map[K]*slot[K, V]
	used  slot[K, V] // head of the ring: next is what was used last
	cost  int64
	limit int64
}

type slot[K comparable, V any] struct {
	key        K
	value      V
	next, prev *slot[K, V]
}

func (s *shelf[K, V]) init(limit int64, cost func(K, V) int64) {
	s.seed, s.cost = maphash.MakeSeed(), cost
	for i := range s.shards {
		h := &s.shards[i]
		h.all, h.limit = map[K]*slot[K, V]{}, max(limit/shards, 1)
		h.used.next, h.used.prev = &h.used, &h.used
	}
}

func (s *shelf[K, V]) shard(k K) *shard[K, V] {
	return &s.shards[maphash.Comparable(s.seed, k)%shards]
}

func (o *slot[K, V]) unlink() { o.next.prev, o.prev.next = o.prev, o.next }

func (h *shard[K, V]) front(o *slot[K, V]) {
	o.next, o.prev = h.used.next, &h.used
	o.next.prev, h.used.next = o, o
}

// get is the value of k.
func (s *shelf[K, V]) get(k K) (v V, ok bool) {
	h := s.shard(k)
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.all[k]
	if o == nil {
		return v, false
	}
	if h.used.next != o {
		o.unlink()
		h.front(o)
	}
	return o.value, true
}

// update gives k the value that f makes of the present one, unless f reports false.
func (s *shelf[K, V]) update(k K, f func(old V, ok bool) (v V, keep bool)) {
	h := s.shard(k)
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.all[k]
	var old V
	if o != nil {
		old = o.value
	}
	v, keep := f(old, o != nil)
	if !keep {
		return
	}
	if o == nil {
		o = &slot[K, V]{key: k}
		h.all[k] = o
	} else {
		o.unlink()
		h.cost -= s.cost(k, old)
	}
	o.value = v
	h.cost += s.cost(k, v)
	h.front(o)
	for h.cost > h.limit && h.used.prev != o {
		s.drop(h, h.used.prev)
	}
}

func (s *shelf[K, V]) drop(h *shard[K, V], o *slot[K, V]) {
	o.unlink()
	h.cost -= s.cost(o.key, o.value)
	delete(h.all, o.key)
}

// remove forgets k.
func (s *shelf[K, V]) remove(k K) {
	h := s.shard(k)
	h.mu.Lock()
	defer h.mu.Unlock()
	if o := h.all[k]; o != nil {
		s.drop(h, o)
	}
}

// removeIf forgets what f reports true for.
func (s *shelf[K, V]) removeIf(f func(K, V) bool) (n int) {
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.Lock()
		for k, o := range h.all {
			if f(k, o.value) {
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
		n += len(h.all)
		cost += h.cost
		h.mu.Unlock()
	}
	return n, cost
}
