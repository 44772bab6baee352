package hosts

import (
	"bytes"
	"iter"
	"math/bits"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// table is the names and addresses of one source. It never changes; the nil table is empty. Of a million names it is some
// hundred pieces of memory without pointers in them, and takes some 14 octets a name beside the name and its address.
type table struct {
	pages   []page
	entries int       // addresses by name, names by address
	wild    bool      // there are names that stand for others
	changed time.Time // of the file

	// By name and family: the first sameName entries of each, in the order of the source, by open addressing. A
	// slot is 0 or a place plus one, in its lower width bits; above them it has bits of the hash.
	slots []uint32
	width uint
	more  map[uint32][]uint32 // places of further entries, by that of the first one

	// By address: bucket i is the places in reverse from ends[i-1] to ends[i].
	ends    []uint32
	reverse []uint32
}

// sameName is how many entries of one name and family are in slots: with more, others would take long to find.
const sameName = 8

// at is the entry at a place.
func (t *table) at(place uint32) entry {
	return entry(t.pages[place>>pageBits].entries[place&(pageSize-1):])
}

// keyOf makes one hash of a name's hash and a family.
func keyOf(hash uint64, is6 bool) uint64 {
	if is6 {
		hash = ^hash
	}
	return hash
}

// first is the slot that a search begins at, and the bits of the hash that a slot has.
func (t *table) first(key uint64) (slot uint64, tag uint32) {
	slot, _ = bits.Mul64(key, uint64(len(t.slots)))
	return slot, uint32(key) << t.width
}

// found is one of the addresses of a name.
type found struct {
	entry entry
	t     *table
	name  []byte // of all entries that are looked for
	is6   bool
	head  uint32 // place of the first one
	slot  uint64 // behind the entry's, as long as it is one of the first
	tag   uint32
	n     int // those before it
}

// find makes f the first address of a name and a family, if there is one. A name that has none takes those of the wildcard
// that stands for its first label.
func (t *table) find(f *found, name []byte, hash uint64, typ uint16) bool {
	if t == nil {
		return false
	}
	if t.exact(f, name, hash, typ == wire.TypeAAAA) {
		return true
	}
	if !t.wild || len(name) == 1 {
		return false
	}
	var buf [wire.MaxName + 1]byte
	star := append(append(buf[:0], 1, '*'), wire.Parent(name)...)
	return len(star) <= wire.MaxName && t.exact(f, star, wire.Hash(star), f.is6)
}

// exact is find for a name as it is.
func (t *table) exact(f *found, name []byte, hash uint64, is6 bool) bool {
	f.t, f.is6, f.n = t, is6, 0
	f.slot, f.tag = t.first(keyOf(hash, is6))
	f.entry, f.head = f.search(name)
	if f.entry == nil {
		return false
	}
	f.name = f.entry[1 : 1+len(name)] // as the name may lie in memory of the caller
	return true
}

// search is the next entry of a name in the slots, with its place.
func (f *found) search(name []byte) (entry, uint32) {
	t := f.t
	mask := uint32(1)<<t.width - 1
	for slot := f.slot; ; {
		s := t.slots[slot]
		if s == 0 {
			f.slot = slot
			return nil, 0
		}
		if slot++; slot == uint64(len(t.slots)) {
			slot = 0
		}
		if s&^mask != f.tag {
			continue
		}
		if e := t.at(s&mask - 1); e.named(name, f.is6) {
			f.slot = slot
			return e, s&mask - 1
		}
	}
}

// next goes on to the next address, in the order of the source, if there is one.
func (f *found) next() bool {
	if f.n++; f.n < sameName {
		f.entry, _ = f.search(f.name)
		return f.entry != nil
	}
	more := f.t.more[f.head]
	if f.n-sameName == len(more) {
		return false
	}
	f.entry = f.t.at(more[f.n-sameName])
	return true
}

// addr is the address.
func (f *found) addr() netip.Addr { return f.entry.addrBehind(len(f.name)) }

// bucket is where in reverse an address is.
func (t *table) bucket(a netip.Addr) uint64 {
	b := a.As16()
	i, _ := bits.Mul64(wire.Hash(b[:]), uint64(len(t.ends)))
	return i
}

// names is the names of an address. Each is only to be read.
func (t *table) names(addr netip.Addr) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if t == nil || len(t.ends) == 0 {
			return
		}
		bucket, from := t.bucket(addr), uint32(0)
		if bucket > 0 {
			from = t.ends[bucket-1]
		}
		for _, place := range t.reverse[from:t.ends[bucket]] {
			if e := t.at(place); e.addr() == addr && !yield(e.name()) {
				return
			}
		}
	}
}

// has reports whether name is one of an address' names.
func (t *table) has(addr netip.Addr, name []byte) bool {
	for n := range t.names(addr) {
		if bytes.Equal(n, name) {
			return true
		}
	}
	return false
}

// size is the octets of memory that the table takes.
func (t *table) size() int {
	n := 4 * (len(t.slots) + len(t.ends) + len(t.reverse))
	for _, p := range t.pages {
		n += len(p.entries)
	}
	for _, more := range t.more {
		n += 4 * cap(more)
	}
	return n
}
