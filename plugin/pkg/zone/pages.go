package zone

import (
	"errors"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// pages is an index of names that versions of a zone share, in place of slots: pages are small tables of open
// addressing, and a directory of three floors leads to them (extendible hashing). A version that changes one name
// copies its page and the way to it, about 1.5 kilobytes for a million names: what versions throw away is what the
// collector has to do while queries are answered.
//
//	top ──upper bits──▶ floor ──next 5──▶ floor ──lower 5──▶ page ──▶ slot: upper half of the hash, place of the node
//
// All bits are of the hash's upper half, so that a slot alone tells where it belongs. A page that is full is split in
// two, by one bit more; entries of the directory that differ in bits that a page does not use lead to the same page.
//
// A page or floor belongs to the version that it was made for, and is written by that one's Change only.
type pages struct {
	bits  uint // of the hash that choose an entry of the directory
	count int  // pages
	top   []*upperFloor
}

const (
	floorBits = 5
	floorSize = 1 << floorBits

	pageSlots = 62 // with what else a page has, 512 octets
	fullPage  = 48 // names

	// pageNames is up to how many names a page has on average when the index is made.
	pageNames = 32

	// maxPageBits bounds the directory. Hashes are seeded, so that more than a page of names that have so many bits in
	// common are not met.
	maxPageBits = 26
)

type upperFloor struct {
	by     uint64
	floors [floorSize]*lowerFloor
}

type lowerFloor struct {
	by    uint64
	pages [floorSize]*page
}

type page struct {
	by    uint64
	names uint32
	depth uint32 // bits of the hash that its names have in common
	slots [pageSlots]uint64
}

var errCrowded = errors.New("too many names have the same hash")

// newPages is an index for so many names, without any.
func newPages(names int, by uint64) pages {
	p := pages{}
	for names>>p.bits > pageNames && p.bits < maxPageBits {
		p.bits++
	}
	p.count = 1 << p.bits
	p.top = make([]*upperFloor, (1<<p.bits+floorSize*floorSize-1)>>(2*floorBits))
	for i := range uint32(1) << p.bits {
		*p.entry(i, by) = &page{by: by, depth: uint32(p.bits)}
	}
	return p
}

// of is the page of the upper half of a hash.
func (p *pages) of(h uint32) *page {
	// The uppermost bits choose in the top, so that a directory that doubles has its top twice, and no floor anew.
	n := h & (1<<p.bits - 1)
	return p.top[n>>(2*floorBits)].floors[n>>floorBits&(floorSize-1)].pages[n&(floorSize-1)]
}

// home is the slot of a page where a search begins: by other bits than those that chose the page.
func home(h uint32) uint32 { return uint32(uint64(h) * pageSlots >> 32) }

// behind is the slot behind another.
func behind(i uint32) uint32 {
	if i++; i == pageSlots {
		return 0
	}
	return i
}

// find is the place of a name, 0 if it is not there.
func (p *pages) find(z *Zone, prefix []byte, hash uint64) uint32 {
	h := uint32(hash >> 32)
	pg := p.of(h)
	for i := home(h); ; i = behind(i) {
		slot := pg.slots[i]
		if slot == 0 {
			return 0
		}
		if uint32(slot>>32) == h && string(z.at(uint32(slot)).prefix()) == string(prefix) {
			return uint32(slot)
		}
	}
}

// entry is an entry of the directory, which may be written to by a Change.
func (p *pages) entry(i uint32, by uint64) **page {
	// The top is the version's own already: Change copied it.
	up := &p.top[i>>(2*floorBits)]
	switch {
	case *up == nil:
		*up = &upperFloor{by: by}
	case (*up).by != by:
		c := **up
		c.by = by
		*up = &c
	}
	low := &(*up).floors[i>>floorBits&(floorSize-1)]
	switch {
	case *low == nil:
		*low = &lowerFloor{by: by}
	case (*low).by != by:
		c := **low
		c.by = by
		*low = &c
	}
	return &(*low).pages[i&(floorSize-1)]
}

// lead makes all entries that a page has lead to it; h is the hash of one of its names.
func (p *pages) lead(h uint32, pg *page) {
	for i := h & (1<<pg.depth - 1); i < 1<<p.bits; i += 1 << pg.depth {
		*p.entry(i, pg.by) = pg
	}
}

// own is the page of a hash, which may be written to by a Change.
func (p *pages) own(h uint32, by uint64) *page {
	pg := p.of(h)
	if pg.by != by {
		c := *pg
		c.by = by
		pg = &c
		p.lead(h, pg)
	}
	return pg
}

// set makes a name stand at a place; old is where it stood, 0 for nowhere.
func (p *pages) set(hash uint64, old, place uint32, by uint64) error {
	h := uint32(hash >> 32)
	pg := p.own(h, by)
	// Most changes are of names that are there: their slots get another place.
	if old != 0 {
		pg.slots[pg.slot(h, old)] = uint64(h)<<32 | uint64(place)
		return nil
	}
	for pg.names == fullPage {
		if err := p.split(h, pg); err != nil {
			return err
		}
		pg = p.of(h)
	}
	pg.put(uint64(h)<<32 | uint64(place))
	return nil
}

// remove takes away a name that stands at a place.
func (p *pages) remove(hash uint64, place uint32, by uint64) {
	h := uint32(hash >> 32)
	pg := p.own(h, by)
	free := pg.slot(h, place)
	pg.slots[free] = 0
	pg.names--
	// Those behind it move up, unless they would stand before where their search begins.
	for i := behind(free); pg.slots[i] != 0; i = behind(i) {
		if from := home(uint32(pg.slots[i] >> 32)); distance(from, i) >= distance(free, i) {
			pg.slots[free], pg.slots[i] = pg.slots[i], 0
			free = i
		}
	}
}

// distance is how many slots a search goes from one to another.
func distance(from, to uint32) uint32 {
	if to < from {
		to += pageSlots
	}
	return to - from
}

// slot is where a name stands that is there.
func (pg *page) slot(h, place uint32) uint32 {
	i := home(h)
	for uint32(pg.slots[i]) != place {
		i = behind(i)
	}
	return i
}

func (pg *page) put(slot uint64) {
	i := home(uint32(slot >> 32))
	for pg.slots[i] != 0 {
		i = behind(i)
	}
	pg.slots[i] = slot
	pg.names++
}

// split makes two pages of a full one, which the Change owns.
func (p *pages) split(h uint32, pg *page) error {
	if uint(pg.depth) == p.bits {
		if p.bits == maxPageBits {
			return errCrowded
		}
		p.double(pg.by)
	}
	// The page stays for names that have the next bit clear; those that have it set go to another.
	all, bit := pg.slots, uint32(1)<<pg.depth
	*pg = page{by: pg.by, depth: pg.depth + 1}
	other := &page{by: pg.by, depth: pg.depth}
	for _, slot := range all {
		switch {
		case slot == 0:
		case uint32(slot>>32)&bit == 0:
			pg.put(slot)
		default:
			other.put(slot)
		}
	}
	p.lead(h|bit, other)
	p.count++
	return nil
}

// double makes the directory use one bit more: each entry is there twice then.
func (p *pages) double(by uint64) {
	n := uint32(1) << p.bits
	p.bits++
	if n < floorSize*floorSize { // the top has one floor still
		for i := range n {
			*p.entry(n+i, by) = p.of(i)
		}
		return
	}
	// Both halves share floors, but for those of this version: what is written into one half must not be in the other.
	p.top = append(p.top, p.top...)
	for i, up := range p.top[len(p.top)/2:] {
		if up.by != by {
			continue
		}
		c := *up
		for k, low := range c.floors {
			if low.by == by {
				copied := *low
				c.floors[k] = &copied
			}
		}
		p.top[len(p.top)/2+i] = &c
	}
}

// spread is an index of all nodes of z.
func spread(z *Zone, places []uint32, by uint64) (pages, error) {
	p := newPages(len(places), by)
	var name []byte
	for _, place := range places {
		name = append(append(name[:0], z.at(place).prefix()...), z.origin...)
		if err := p.set(wire.Hash(name), 0, place, by); err != nil {
			return p, err
		}
	}
	return p, nil
}

// octets is about how much memory the index takes.
func (p *pages) octets() int { return 512*p.count + 9*(1<<p.bits) }
