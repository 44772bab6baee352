package zone

import (
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/readahead"
)

// Large reports whether the zone is so large that reading ahead pays; see package readahead.
func (z *Zone) Large() bool { return z.nodes > readahead.LargeSize/nameSize }

// nameSize is the octets that a name takes at least, with what leads to it.
const nameSize = 64

// nodeAhead is the octets of a node that are read ahead: all of most nodes.
const nodeAhead = 128

// Fetch has the processor fetch what leads to the names of z.
func (z *Zone) Fetch() {
	readahead.Bytes(unsafe.Slice((*byte)(unsafe.Pointer(z)), versionAhead))
}

// versionAhead is the octets of a Zone that each query looks at.
const versionAhead = unsafe.Offsetof(Zone{}.nodes)

// ReadAhead has the processor fetch what looking up a name with a hash begins with, when so many queries are left
// before it; see readahead.Table.
func (z *Zone) ReadAhead(hash uint64, left int) {
	switch {
	case left == 1:
		if place := z.candidate(hash); place != 0 {
			n := z.at(place)
			readahead.Bytes(n[:min(len(n), nodeAhead)])
		}
	case left > 2:
	case z.grown != nil:
		h := uint32(hash >> 32)
		readahead.Line(unsafe.Pointer(&z.grown.names.of(h).slots[home(h)]))
	default:
		readahead.Line(unsafe.Pointer(&z.index[8*(hash&z.index.mask())]))
	}
}

// candidate is the place of the first node that a search for a hash looks at, 0 if it looks at none.
func (z *Zone) candidate(hash uint64) uint32 {
	if z.grown != nil {
		return z.grown.names.candidate(hash)
	}
	mask := z.index.mask()
	for i := hash & mask; ; i = (i + 1) & mask {
		if slot := z.index.at(i); slot == 0 || slot>>32 == hash>>32 {
			return uint32(slot)
		}
	}
}

func (p *pages) candidate(hash uint64) uint32 {
	h := uint32(hash >> 32)
	pg := p.of(h)
	for i := home(h); ; i = behind(i) {
		if slot := pg.slots[i]; slot == 0 || uint32(slot>>32) == h {
			return uint32(slot)
		}
	}
}
