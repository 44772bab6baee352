package hosts

import (
	"math/bits"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// indexer enters the entries of pages into the indexes of a table.
type indexer struct {
	*table
	dropped []uint32 // places of repetitions, in order
	seen    map[pair]bool
	turns   eventloop.Turns
}

// pair is an address of a name with many; head is the place of the first one.
type pair struct {
	head uint32
	addr netip.Addr
}

// newTable makes a table of pages; by address it finds names only if it is to.
func newTable(pages []page, reverse bool) *table {
	x := indexer{table: &table{pages: pages}}
	n := 0
	for range all(pages) {
		n++
	}
	x.byName(n)
	x.entries = n - len(x.dropped)
	if reverse {
		x.byAddress()
		x.entries += len(x.reverse)
	}
	return x.table
}

// byName enters n entries by their names, each once.
func (x *indexer) byName(n int) {
	x.slots = make([]uint32, 2*n+1) // half of them are free, so that searches are short
	x.width = uint(bits.Len32(uint32(len(x.pages)) << pageBits))
	var f found
	for place, e := range all(x.pages) {
		x.turns.Done()
		name := e.name()
		x.wild = x.wild || e.wild()
		addr := e.addrBehind(len(name))
		there := x.exact(&f, name, wire.Hash(name), e.is6())
		for there && f.n < sameName-1 && f.addr() != addr {
			there = f.next()
		}
		switch {
		case !there:
			x.slots[f.slot] = place + 1 | f.tag
		case f.addr() == addr || !x.another(f.head, place, addr):
			x.dropped = append(x.dropped, place)
		}
	}
}

// another enters one more entry of a name that has sameName, unless it is among the further ones already.
func (x *indexer) another(head, place uint32, addr netip.Addr) bool {
	p := pair{head, addr}
	if x.seen[p] {
		return false
	}
	if x.seen == nil {
		x.seen, x.more = map[pair]bool{}, map[uint32][]uint32{}
	}
	x.seen[p] = true
	x.more[head] = append(x.more[head], place)
	return true
}

// byAddress enters all entries by their addresses, but those that stand for others.
func (x *indexer) byAddress() {
	n := 0
	for range x.named() {
		n++
	}
	x.ends, x.reverse = make([]uint32, n/2+1), make([]uint32, n)
	for _, e := range x.named() {
		x.ends[x.bucket(e.addr())]++
	}
	from := uint32(0)
	for i, count := range x.ends { // for now, where a bucket begins
		x.ends[i] = from
		from += count
	}
	for place, e := range x.named() {
		i := x.bucket(e.addr())
		x.reverse[x.ends[i]] = place
		x.ends[i]++
	}
}

// named is the entries that addresses have names from.
func (x *indexer) named() func(yield func(uint32, entry) bool) {
	return func(yield func(uint32, entry) bool) {
		dropped := x.dropped
		for place, e := range all(x.pages) {
			x.turns.Done()
			if len(dropped) > 0 && dropped[0] == place {
				dropped = dropped[1:]
				continue
			}
			if !e.wild() && !yield(place, e) {
				return
			}
		}
	}
}
