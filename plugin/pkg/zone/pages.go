package zone

import (
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// pages is an index of names that versions of a zone share, in place of slots. Names are spread by the lower half of
// their hashes over pages, which are small tables of open addressing; pages stand in groups, so that a version which
// changes one name copies its page, the group and the list of groups, about five kilobytes for a million names.
//
//	groups ──lower bits──▶ group ──next bits──▶ page ──upper half──▶ slot: upper half of the hash, place of the node
//
// A page or group belongs to the version that it was made for, and is written by that one's Change only.
type pages struct {
	bits   uint // of the hash that choose the page
	groups []*pageGroup
}

const (
	groupBits = 6
	groupSize = 1 << groupBits

	// Pages are small, as a change copies one; and not too small, as each has a place in its group, which is copied,
	// too.
	pageNames    = 160 // on average when the index is made
	maxPageNames = 480 // on average, before all names are spread over more pages
)

type pageGroup struct {
	by    uint64
	pages [groupSize]page
}

type page struct {
	// A search begins where the lowest bits of the hash's upper half say, so that a slot alone tells where it belongs,
	// and a page can grow, or close a gap, without a look at any name.
	slots []uint64 // a power of two of them; 0 is free
	names int
	by    uint64
}

// newPages is an index for so many names, without any.
func newPages(names int, by uint64) pages {
	bits := uint(0)
	for names>>bits > pageNames {
		bits++
	}
	p := pages{bits: bits, groups: make([]*pageGroup, max(1, 1<<bits>>groupBits))}
	for i := range p.groups {
		p.groups[i] = &pageGroup{by: by}
	}
	return p
}

// of is the page of a hash.
func (p *pages) of(hash uint64) *page {
	n := hash & (1<<p.bits - 1)
	return &p.groups[n>>groupBits].pages[n&(groupSize-1)]
}

// find is the place of a name, 0 if it is not there.
func (p *pages) find(z *Zone, prefix []byte, hash uint64) uint32 {
	slots := p.of(hash).slots
	if len(slots) == 0 {
		return 0
	}
	mask := uint64(len(slots) - 1)
	for i := hash >> 32 & mask; ; i = (i + 1) & mask {
		slot := slots[i]
		if slot == 0 {
			return 0
		}
		if slot>>32 == hash>>32 && string(z.at(uint32(slot)).prefix()) == string(prefix) {
			return uint32(slot)
		}
	}
}

// own is the page of a hash, which may be written to by a Change.
func (p *pages) own(hash uint64, by uint64) *page {
	// The list of groups is the version's own already: Change copied it.
	n := hash & (1<<p.bits - 1)
	g := &p.groups[n>>groupBits]
	if (*g).by != by {
		c := **g
		c.by = by
		*g = &c
	}
	pg := &(*g).pages[n&(groupSize-1)]
	if pg.by != by {
		pg.slots, pg.by = append([]uint64(nil), pg.slots...), by
	}
	return pg
}

// set makes a name stand at a place; old is where it stood, 0 for nowhere.
func (p *pages) set(hash uint64, old, place uint32, by uint64) {
	pg := p.own(hash, by)
	// Most changes are of names that are there: their slots get another place.
	if old == 0 {
		pg.add(hash>>32<<32 | uint64(place))
		return
	}
	pg.slots[pg.slot(hash, old)] = hash>>32<<32 | uint64(place)
}

// remove takes away a name that stands at a place.
func (p *pages) remove(hash uint64, place uint32, by uint64) {
	pg := p.own(hash, by)
	mask := uint64(len(pg.slots) - 1)
	free := pg.slot(hash, place)
	pg.slots[free] = 0
	pg.names--
	// Those behind it move up, unless they would stand before where their search begins.
	for i := (free + 1) & mask; pg.slots[i] != 0; i = (i + 1) & mask {
		home := pg.slots[i] >> 32 & mask
		if (i-home)&mask >= (i-free)&mask {
			pg.slots[free], pg.slots[i] = pg.slots[i], 0
			free = i
		}
	}
}

// slot is where a name stands that is there.
func (pg *page) slot(hash uint64, place uint32) uint64 {
	mask := uint64(len(pg.slots) - 1)
	for i := hash >> 32 & mask; ; i = (i + 1) & mask {
		if uint32(pg.slots[i]) == place {
			return i
		}
	}
}

// add puts a slot into the page, which grows before it is three quarters full.
func (pg *page) add(slot uint64) {
	if 4*(pg.names+1) > 3*len(pg.slots) {
		old := pg.slots
		pg.slots, pg.names = make([]uint64, max(4, 2*len(old))), 0
		for _, s := range old {
			if s != 0 {
				pg.put(s)
			}
		}
	}
	pg.put(slot)
}

func (pg *page) put(slot uint64) {
	mask := uint64(len(pg.slots) - 1)
	i := slot >> 32 & mask
	for pg.slots[i] != 0 {
		i = (i + 1) & mask
	}
	pg.slots[i] = slot
	pg.names++
}

// crowded reports whether so many names are too many for the pages that there are.
func (p *pages) crowded(names int) bool { return names>>p.bits > maxPageNames }

// spread is an index of all nodes of z, for as many names as there are now.
func spread(z *Zone, places []uint32, by uint64) pages {
	p := newPages(len(places), by)
	var name []byte
	for _, place := range places {
		name = append(append(name[:0], z.at(place).prefix()...), z.origin...)
		p.set(wire.Hash(name), 0, place, by)
	}
	return p
}

// octets is about how much memory the index takes.
func (p *pages) octets(names int) int { return len(p.groups)*(groupSize*40+8) + 16*names }
