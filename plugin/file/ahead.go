package file

import (
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Large zones are read ahead; see readahead.Table.

// Large implements readahead.Table.
func (f File) Large() bool { return f.index != nil && f.index.Large() }

// ReadAhead implements readahead.Table.
func (f File) ReadAhead(q *wire.Query, step int) { f.index.ReadAhead(q, step) }

// fewZones is how many slots an Index has at most that looks whether one of its zones is large.
const fewZones = 64

// Large reports whether a zone is so large that ReadAhead pays. Where there are many zones none is looked at.
func (x *Index) Large() bool {
	return len(x.slots) <= fewZones && slices.ContainsFunc(x.slots, func(s indexSlot) bool {
		return s.zone != nil && s.zone.Large()
	})
}

// ReadAhead is that of the zone for q, if there is one.
func (x *Index) ReadAhead(q *wire.Query, step int) {
	if z, _ := x.Find(q); z != nil {
		z.ReadAhead(q, step)
	}
}

// Large reports whether the version in the store is so large that ReadAhead pays.
func (z *Zone) Large() bool {
	v := z.store.Load()
	return v != nil && v.Large()
}

// ReadAhead has the processor fetch what looking up q begins with, in the version in the store.
func (z *Zone) ReadAhead(q *wire.Query, step int) {
	if v := z.store.Load(); v != nil {
		v.ReadAhead(q.Hash(), step)
	}
}
