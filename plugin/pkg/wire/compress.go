package wire

import (
	"encoding/binary"
	"sync"
)

// compressor finds names that a message already holds (RFC 1035 §4.1.4). It is a
// small hash table of suffixes that lives in the Reply; a new message makes it
// empty by counting gen on.
//
// Names that were chosen to collide make it forgetful, not slow: a suffix is looked for in a few slots only, and
// after some that have its hash without being it, in none.
//
// A message that would be too long is written anew with a larger table, which holds each suffix that a pointer can
// lead to.
type compressor struct {
	gen uint16
	entered
	large *largeTable // nil for most messages
	slots [compressSlots]suffix
}

// entered is how far a message is.
type entered struct {
	begun  bool  // the question's suffixes are in
	misled uint8 // how often another name had the hash that was looked for
	used   int
}

// largeTable takes the place of the slots of a compressor.
type largeTable struct {
	gen   uint16
	slots [largeSlots]suffix
}

var largeTables = sync.Pool{New: func() any { return new(largeTable) }}

type suffix struct {
	hash uint32
	off  uint16 // where in the message it stands
	gen  uint16
}

const (
	compressSlots = 256
	compressFull  = 96     // more suffixes than this are not remembered
	largeSlots    = 8192   // of a large table; what a pointer reaches holds as many labels of one octet
	largeFull     = 6144   // more suffixes than this are not remembered there
	smallLimit    = 1232   // a message up to this length needs no large table
	maxProbes     = 16     // slots that are looked at for one suffix
	maxMisled     = 64     // a message whose names have one hash that often is written without compression
	maxPointer    = 0x3FFF // greatest offset that a pointer can hold
)

func (c *compressor) reset() {
	c.entered = entered{}
	if c.gen++; c.gen == 0 || c.large != nil {
		c.renew()
	}
}

// renew is what reset does for few messages.
func (c *compressor) renew() {
	if c.large != nil {
		largeTables.Put(c.large)
		c.large = nil
	}
	if c.gen == 0 { // each slot might look new again
		*c = compressor{gen: 1}
	}
}

// enlarge makes the compressor an empty one with a large table.
func (c *compressor) enlarge() {
	c.reset()
	c.large = largeTables.Get().(*largeTable)
	if c.large.gen++; c.large.gen == 0 {
		clear(c.large.slots[:])
		c.large.gen = 1
	}
}

// appendName appends name to the message, with a pointer in place of the longest
// suffix that is known. With remember, the suffixes written here may be pointed to
// later; without, not: names of records that may change places must not be.
// With point unset the name is written in full (RFC 3597 §4).
func (w *Reply) appendName(name []byte, point, remember bool) {
	if !w.names.begun { // many replies hold no name but the question's
		w.names.begun = true
		w.remember(HeaderLen)
	}
	var offs [128]uint8
	n := LabelOffsets(name, &offs)
	var hashes [128]uint32
	h := uint32(2166136261)
	for i := n - 1; i >= 0; i-- {
		h = hashLabel(h, name[offs[i]:])
		hashes[i] = h
	}
	for i := 0; i < n; i++ {
		suffix := name[offs[i]:]
		if point {
			if off, ok := w.names.find(w.buf, hashes[i], suffix); ok {
				w.buf = binary.BigEndian.AppendUint16(w.buf, 0xC000|off)
				return
			}
		}
		if remember && len(w.buf) <= maxPointer {
			if at := uint16(len(w.buf)); w.names.large == nil {
				w.names.add(hashes[i], at)
			} else {
				w.names.addLarge(hashes[i], at)
			}
		}
		w.buf = append(w.buf, suffix[:suffix[0]+1]...)
	}
	w.buf = append(w.buf, 0)
}

// remember enters the suffixes of a name that stands uncompressed in the message at off.
func (w *Reply) remember(off int) {
	var offs [128]uint8
	name := w.buf[off:]
	h := uint32(2166136261)
	for i := LabelOffsets(name, &offs) - 1; i >= 0; i-- {
		h = hashLabel(h, name[offs[i]:])
		switch at := off + int(offs[i]); {
		case at > maxPointer:
		case w.names.large == nil:
			w.names.add(h, uint16(at))
		default:
			w.names.addLarge(h, uint16(at))
		}
	}
}

// hashLabel takes the label at the begin of b into h (FNV-1a).
func hashLabel(h uint32, b []byte) uint32 {
	for _, c := range b[:b[0]+1] {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

func (c *compressor) find(msg []byte, hash uint32, name []byte) (off uint16, ok bool) {
	if c.large != nil {
		return c.findLarge(msg, hash, name)
	}
	for i := range uint32(maxProbes) {
		s := &c.slots[(hash+i)%compressSlots]
		if s.gen != c.gen || c.misled == maxMisled {
			return 0, false
		}
		if s.hash == hash {
			if nameAt(msg, int(s.off), name) {
				return s.off, true
			}
			c.misled++
		}
	}
	return 0, false
}

// findLarge is find in a large table.
func (c *compressor) findLarge(msg []byte, hash uint32, name []byte) (off uint16, ok bool) {
	t := c.large
	for i := range uint32(maxProbes) {
		s := &t.slots[(hash+i)%largeSlots]
		if s.gen != t.gen || c.misled == maxMisled {
			return 0, false
		}
		if s.hash == hash {
			if nameAt(msg, int(s.off), name) {
				return s.off, true
			}
			c.misled++
		}
	}
	return 0, false
}

// add enters a suffix into the slots: addLarge is for a large table. It is small enough to be a part of its callers.
func (c *compressor) add(hash uint32, off uint16) {
	if c.used == compressFull {
		return
	}
	for i := range uint32(maxProbes) {
		if s := &c.slots[(hash+i)%compressSlots]; s.gen != c.gen {
			*s = suffix{hash, off, c.gen}
			c.used++
			return
		}
	}
}

// addLarge is add to a large table. A suffix that is written often, as those of targets of SRV records are, is entered
// once; and so is one of two with the same hash.
func (c *compressor) addLarge(hash uint32, off uint16) {
	t := c.large
	if c.used == largeFull {
		return
	}
	for i := range uint32(maxProbes) {
		s := &t.slots[(hash+i)%largeSlots]
		if s.gen != t.gen {
			*s = suffix{hash, off, t.gen}
			c.used++
			return
		}
		if s.hash == hash {
			return
		}
	}
}

// nameAt reports whether the name at off of msg, which may end in a pointer, is
// name octet by octet. Case counts: a pointer must not change how a name is written.
func nameAt(msg []byte, off int, name []byte) bool {
	for off < len(msg) {
		n := int(msg[off])
		if n&0xC0 == 0xC0 {
			off = int(binary.BigEndian.Uint16(msg[off:]) & maxPointer)
			continue
		}
		if n != int(name[0]) || off+1+n > len(msg) || string(msg[off+1:off+1+n]) != string(name[1:n+1]) {
			return false
		}
		if n == 0 {
			return true
		}
		off += n + 1
		name = name[n+1:]
	}
	return false
}
