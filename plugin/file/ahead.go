package file

import (
	"slices"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

// Large zones, and many small ones, are read ahead; see readahead.Table.

// Large implements readahead.Table.
func (f File) Large() bool { return f.index != nil && f.index.Large() }

// ReadAhead implements readahead.Table.
func (f File) ReadAhead(q *wire.Query, left int, found any) any {
	return f.index.ReadAhead(q, left, found)
}

// An Index of more than fewZones slots is not asked for the sizes of its zones: a few such zones are read ahead without
// need. One of more than manyZones is large by itself.
const (
	fewZones  = 64
	manyZones = readahead.LargeSize / zoneOctets
)

// zoneOctets is the memory of a small zone, more or less, with what leads to it.
const zoneOctets = 1024

// Large reports whether one of the zones is so large that reading ahead pays, or they are many.
func (x *Index) Large() bool {
	if len(x.slots) > fewZones {
		return len(x.slots) > manyZones
	}
	return slices.ContainsFunc(x.slots, func(s indexSlot) bool { return s.zone != nil && s.zone.Large() })
}

// ReadAhead implements readahead.Table for who answers from the zones of x. What it finds is first the zone, and then its
// version.
func (x *Index) ReadAhead(q *wire.Query, left int, found any) any {
	switch left {
	case 5:
		if len(x.slots) > fewZones {
			x.closest(q.Lower(), func(s *indexSlot, _ uint64) bool {
				readahead.Line(unsafe.Pointer(s))
				return false
			})
		}
	case 4:
		if len(x.slots) <= fewZones {
			return nil
		}
		if z := x.candidate(q.Lower()); z != nil {
			readahead.Bytes(unsafe.Slice((*byte)(unsafe.Pointer(z)), zoneAhead))
			return z
		}
	case 3:
		z, _ := found.(*Zone)
		if z == nil {
			z, _ = x.Find(q)
		}
		if z == nil {
			return nil
		}
		if v := z.store.Load(); v != nil {
			v.Fetch()
			return v
		}
	default:
		if v, _ := found.(*zone.Zone); v != nil {
			v.ReadAhead(q.Hash(), left)
			return v
		}
	}
	return nil
}

// zoneAhead is the octets of a Zone that each query looks at.
const zoneAhead = unsafe.Offsetof(Zone{}.origin)

// candidate is the zone that the search for a name most likely ends at, nil if there is none.
func (x *Index) candidate(name []byte) (z *Zone) {
	mask := uint64(len(x.slots) - 1)
	x.closest(name, func(_ *indexSlot, hash uint64) bool {
		for i := hash & mask; z == nil && x.slots[i].zone != nil; i = (i + 1) & mask {
			if x.slots[i].hash == hash {
				z = x.slots[i].zone
			}
		}
		return z != nil
	})
	return z
}

// closest calls visit with the slot at which the search for a zone begins, for a name and those above it of which there
// may be one, until it says that it is done.
func (x *Index) closest(name []byte, visit func(s *indexSlot, hash uint64) (done bool)) {
	mask := uint64(len(x.slots) - 1)
	for depth := wire.CountLabels(name); ; depth-- {
		if x.depths[depth] {
			if hash := wire.Hash(name); visit(&x.slots[hash&mask], hash) {
				return
			}
		}
		if depth == 0 {
			return
		}
		name = wire.Parent(name)
	}
}

// Large reports whether the version in the store is so large that ReadAhead pays.
func (z *Zone) Large() bool {
	v := z.store.Load()
	return v != nil && v.Large()
}

// ReadAhead is that of the version in the store.
func (z *Zone) ReadAhead(q *wire.Query, left int) {
	if v := z.store.Load(); v != nil {
		v.ReadAhead(q.Hash(), left)
	}
}
