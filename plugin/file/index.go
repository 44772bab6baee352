package file

import (
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Index finds the zone for a query in time that does not depend on the number of zones, and with few looks at memory
// that is far away. One that is not changed any more may be read by any number of goroutines.
type Index struct {
	slots  []indexSlot // open addressing, by the hash of the zone's name
	depths [128]bool   // there is a zone whose name has so many labels

	missing map[string]bool // zones that are known, but not there, by name in wire form
}

type indexSlot struct {
	hash uint64
	zone *Zone
}

// NewIndex is an Index of zones by their names, fully qualified and in lower case. What is no name is left out.
func NewIndex(zones map[string]*Zone) *Index {
	size := uint64(2)
	for size < 2*uint64(len(zones)) {
		size *= 2
	}
	x := &Index{slots: make([]indexSlot, size), missing: map[string]bool{}}
	for text, z := range zones {
		name, err := wire.LowerName(text)
		if err != nil {
			continue
		}
		x.depths[wire.CountLabels(name)] = true
		if z == nil || string(z.name) != string(name) {
			x.missing[string(name)] = true
			continue
		}
		hash := wire.Hash(name)
		i := hash & (size - 1)
		for x.slots[i].zone != nil {
			i = (i + 1) & (size - 1)
		}
		x.slots[i] = indexSlot{hash, z}
	}
	return x
}

// Find is the zone of the longest name that the query's name is or lies below. A DS query for a zone's own name belongs to
// the zone above, if that is here, too (RFC 4035 §3.1.4.1).
func (x *Index) Find(q *wire.Query) (z *Zone, known bool) {
	asked := q.Lower()
	name := asked
	for depth := wire.CountLabels(asked); ; depth-- {
		if x.depths[depth] {
			if found, ok := x.get(name); ok {
				if known || q.Type() != dns.TypeDS || len(name) != len(asked) {
					return found, true
				}
				z, known = found, true
			}
		}
		if depth == 0 {
			return z, known
		}
		name = wire.Parent(name)
	}
}

// get is the zone of exactly a lower name.
func (x *Index) get(name []byte) (z *Zone, known bool) {
	hash, mask := wire.Hash(name), uint64(len(x.slots)-1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &x.slots[i]
		if s.zone == nil {
			return nil, len(x.missing) > 0 && x.missing[string(name)]
		}
		if s.hash == hash && string(s.zone.name) == string(name) {
			return s.zone, true
		}
	}
}
