package kubernetes

import (
	"hash/maphash"
	"net/netip"
	"sync"
)

// An index finds records of the reply by a hash of what they say, so that each is added once at a cost that does not
// rise with their number: a hundred endpoints that all stand in a hundred slices are looked for ten thousand times.
type index struct {
	gen   uint16 // of entries that count
	slots [1 << 13]entry
}

// entry is a record of the reply. A message has up to 4,094 of the types that are looked for: the table is never more
// than half full.
type entry struct {
	hash uint32
	rec  uint16
	gen  uint16
}

// fewRecords is up to how many records are compared one by one.
const fewRecords = 8

var indexes = sync.Pool{New: func() any { return new(index) }}

// newIndex returns an empty index, which is to be given to release.
func newIndex() *index {
	x := indexes.Get().(*index)
	if x.gen++; x.gen == 0 { // each entry might look new again
		clear(x.slots[:])
		x.gen = 1
	}
	return x
}

func (x *index) release() { indexes.Put(x) }

// seed is secret: who chooses addresses and names cannot choose them so that they collide.
var seed = maphash.MakeSeed()

// hashStep spreads numbers that are added to a hash over all of its bits.
const hashStep = 0x9e3779b97f4a7c15

func hashOf(b []byte) uint64 { return maphash.Bytes(seed, b) }

// hashBoth hashes a name and an address.
func hashBoth(name []byte, addr netip.Addr) uint64 {
	var buf [16]byte
	return hashOf(name)*hashStep + hashOf(octets(&buf, addr))
}

// has reports whether there is a record with the hash for which is says that it is the one.
func (x *index) has(hash uint64, is func(rec int) bool) bool {
	for i := hash; ; i++ {
		e := &x.slots[i%uint64(len(x.slots))]
		if e.gen != x.gen {
			return false
		}
		if e.hash == uint32(hash>>32) && is(int(e.rec)) {
			return true
		}
	}
}

// add notes record rec of the reply.
func (x *index) add(hash uint64, rec int) {
	i := hash
	for x.slots[i%uint64(len(x.slots))].gen == x.gen {
		i++
	}
	x.slots[i%uint64(len(x.slots))] = entry{hash: uint32(hash >> 32), rec: uint16(rec), gen: x.gen}
}
