package cache

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coredns/coredns/plugin/cache/freq"
	"github.com/coredns/coredns/plugin/pkg/steady"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// key is what answers are found by. name is a lower name and is only read.
type key struct {
	name []byte
	hash uint64 // of everything in the key
	about
}

// about is what a question is beside its name.
type about struct {
	qtype  uint16
	qclass uint16
	do, cd bool
	nets   bool // it is about the answers for certain networks
}

// question is what is looked up.
type question struct {
	key
	net network // that the query names, if it does; then nets is set
	odd bool    // which network it names cannot be told: nothing is looked up or kept
}

// questionOf is the question of q.
func (s *settings) questionOf(q *wire.Query) question {
	k := question{key: key{name: q.Lower(), about: about{qtype: q.Type(), qclass: q.Class(), do: q.DO(), cd: q.CD()}}}
	rest := uint64(k.qtype)<<18 | uint64(k.qclass)<<2
	if k.do {
		rest |= 1
	}
	if k.cd {
		rest |= 2
	}
	k.hash = (q.Hash() ^ rest*0x9E3779B97F4A7C15) * 0xD6E8FEB86659FD93
	k.hash ^= k.hash >> 32
	if e := q.EDNS(); e.Set != 0 && !s.stripECS {
		net, ok := networkOf(e)
		k.net, k.odd = net, !ok
		if net.asked {
			k.key = k.key.turned()
		}
	}
	return k
}

// turned is the key of the answers for certain networks if k is that for others, and the other way round.
func (k key) turned() key {
	k.nets = !k.nets
	k.hash ^= 0xA24BAED4963EE407
	return k
}

// is reports whether both are one key.
func (k *key) is(o *key) bool {
	return k.hash == o.hash && k.about == o.about && string(k.name) == string(o.name)
}

// same reports whether both are one question.
func (q *question) same(o *question) bool { return q.is(&o.key) && q.net == o.net && !q.odd && !o.odd }

// entry is one answer, or holds those for different networks. What is not atomic does not change once it is stored.
//
// There are many: what few have stands elsewhere, and what can be told in few octets is.
type entry struct {
	// What finding and evicting it looks at lies together.
	hash             uint64
	packed           wire.Packed   // its key is the name
	about                          // of question
	used             atomic.Uint32 // hits of late, at most maxUsed; for eviction
	kind             kind
	answers          bool // it really answers the question (see answers)
	forAll           bool // it is for clients that name a network, too
	nonAuthoritative bool // hits have no AA; see wire.Reply.SetNonAuthoritative
	led              bool // an alias is in it, which may have led to another server block
	inMain           bool // it stands in the main queue of its class; belongs to the shard's lock

	cost   cost   // of getting it again
	ttl    uint32 // seconds it may be kept; all its records have this TTL
	stored moment
	extra  *entryExtra // nil for most
	freq   *freq.Freq  // for prefetching; nil without it
	fetch  fetchState
}

// kind is a response.Type.
type kind uint8

// moment is a time in nanoseconds by the steady clock.
type moment int64

func momentOf(t time.Time) moment { return moment(steady.Passed(t)) }

// key is what e is found by. It is only to be read.
func (e *entry) key() key { return key{e.packed.Key(), e.hash, e.about} }

// is reports whether e is an answer to k.
func (e *entry) is(k *key) bool {
	return e.hash == k.hash && e.about == k.about && string(e.packed.Key()) == string(k.name)
}

// entryExtra is what few entries have.
type entryExtra struct {
	wildcard string   // the wildcard that the answer was made from, for metadata
	failed   bool     // nobody answered, and this is what clients get
	lastGood *entry   // the last entry that answered, kept by one that does not
	ede      []byte   // extended errors (RFC 8914), as EDNS options
	scope    ecsScope // of a variant
	variants []*entry // of one that holds them; see variants.go
}

// more is what e has beside the answer, to be filled in while it is made.
func (e *entry) more() *entryExtra {
	if e.extra == nil {
		e.extra = new(entryExtra)
	}
	return e.extra
}

// fetchState lets one refresh of an entry run at a time.
type fetchState struct {
	running atomic.Bool
	bogus   atomic.Bool  // what came anew was found to be bogus: this is no answer any more, once it has ended
	pause   atomic.Int64 // no refresh before this moment
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
	return int(e.ttl) - int(time.Duration(momentOf(now)-e.stored)/time.Second)
}

// size is the octets of memory that the entry costs.
func (e *entry) size() int64 {
	const places = 96 // about, in table, queues and ghosts
	n := places + entryBlocks(uintptr(e.packed.Size()))
	if e.extra != nil {
		n += block(unsafe.Sizeof(*e.extra)) + block(uintptr(len(e.extra.ede))) + block(uintptr(len(e.extra.wildcard))) + 8*int64(len(e.extra.variants))
	}
	if e.freq != nil {
		n += block(unsafe.Sizeof(*e.freq))
	}
	for _, v := range e.variants() {
		n += v.size()
	}
	return n
}

// block is the octets that the allocator takes for n.
func block(n uintptr) int64 {
	if n > 1024 {
		n += n / 8
	}
	return int64(n+15) &^ 15
}
