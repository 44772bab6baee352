package cache

import (
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/cache/freq"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// key is what an answer is kept under. name is a lower name and is only read.
type key struct {
	name   []byte
	hash   uint64 // of everything in the key
	qtype  uint16
	qclass uint16
	do, cd bool
}

func keyOf(q *wire.Query) key {
	k := key{name: q.Lower(), qtype: q.Type(), qclass: q.Class(), do: q.DO(), cd: q.CD()}
	rest := uint64(k.qtype)<<18 | uint64(k.qclass)<<2
	if k.do {
		rest |= 1
	}
	if k.cd {
		rest |= 2
	}
	k.hash = (q.Hash() ^ rest*0x9E3779B97F4A7C15) * 0xD6E8FEB86659FD93
	k.hash ^= k.hash >> 32
	return k
}

// entry is one answer. What is not atomic does not change once it is stored.
type entry struct {
	key
	packed  wire.Packed
	kind    response.Type
	answers bool          // it really answers the question (see answers)
	ttl     uint32        // seconds it may be kept; all its records have this TTL
	stored  time.Time     // with the monotonic clock
	extra   *entryExtra   // nil for most
	used    atomic.Uint32 // hits of late, at most maxUsed; for eviction
	fetch   fetchState
	freq    *freq.Freq // for prefetching; nil without it

	// Where it stands in its shard; belongs to the shard's lock.
	queue      *queue
	prev, next *entry
}

// entryExtra is what few entries have.
type entryExtra struct {
	wildcard string // the wildcard that the answer was made from, for metadata
	lastGood *entry // the last entry that answered, kept by one that does not
}

// fetchState lets one refresh of an entry run at a time.
type fetchState struct {
	running atomic.Bool
	pause   atomic.Int64 // no refresh before this time, in nanoseconds since the epoch of started
}

const maxUsed = 3

// touch notes a hit. The count is at its bound most of the time, and then not written.
func (e *entry) touch() {
	if n := e.used.Load(); n < maxUsed {
		e.used.CompareAndSwap(n, n+1)
	}
}

// remaining is the seconds of its TTL that are left at now; it is negative when they are over.
func (e *entry) remaining(now time.Time) int {
	return int(e.ttl) - int(now.Sub(e.stored)/time.Second)
}

// size is the octets of memory that the entry costs.
func (e *entry) size() int64 {
	const fixed = 256 // the struct, its slots in table and queue, what the allocator rounds up
	return int64(fixed + len(e.name) + e.packed.Size())
}

// is reports whether both are one key.
func (k *key) is(o *key) bool {
	return k.hash == o.hash && k.qtype == o.qtype && k.qclass == o.qclass && k.do == o.do && k.cd == o.cd && string(k.name) == string(o.name)
}
