package wire

import "encoding/binary"

// Names in a message may end in a pointer to a part of another (RFC 1035 §4.1.4). This file follows pointers, and
// bounds what that may cost: for one name, and for a message.

// maxPointers is how many pointers one name may be made of, as github.com/miekg/dns has it. It has at most 127 labels,
// and who compresses writes no pointer to a pointer.
const maxPointers = 126

// AppendNameAt appends to b the name at off of msg, uncompressed. It reports
// false, and returns b as it was, if there is no well-formed name: cut short, too
// long, of too many pointers, or with one that does not point backwards.
func AppendNameAt(b, msg []byte, off int) ([]byte, bool) {
	start, limit, hops := len(b), off, 0
	for off < len(msg) {
		n := int(msg[off])
		switch {
		case n == 0:
			b = append(b, 0)
			return b, len(b)-start <= MaxName
		case n&0xC0 == 0xC0:
			if hops++; off+1 >= len(msg) || hops > maxPointers {
				return b[:start], false
			}
			off = int(binary.BigEndian.Uint16(msg[off:]) & maxPointer)
			if off >= limit { // backwards only
				return b[:start], false
			}
			limit = off
		case n > MaxLabel || off+1+n > len(msg) || len(b)-start+n+1 >= MaxName:
			return b[:start], false
		default:
			b = append(b, msg[off:off+1+n]...)
			off += n + 1
		}
	}
	return b[:start], false
}

// Effort is what may still be spent on the names of a message. Pointers make names long that take two octets, so who
// reads a message may have far more to do than its length lets expect. A name costs its octets in full, and more for
// each label and pointer.
type Effort int

// What names cost, and what a message may cost for each of its octets and besides. The densest replies that are in use,
// such as thousands of addresses at a long name, cost half of it.
const (
	labelCost   = 4
	pointerCost = 8
	octetEffort = 10
	leastEffort = 64 << 10
)

// EffortOf is the effort that a message of n octets is worth.
func EffortOf(n int) Effort { return Effort(octetEffort*n + leastEffort) }

// Name returns the length in full of the name at off of msg, and where it ends as it stands there. next is 0 if there
// is none as RFC 1035 §4.1.4 has it, with pointers backwards only, or if the effort is spent.
func (e *Effort) Name(msg []byte, off int) (plain, next int) {
	cost, hops, before := 1, 0, off
	for uint(off) < uint(len(msg)) {
		n := int(msg[off])
		if n-1 < MaxLabel && n > 0 {
			off += n + 1
			cost += labelCost
			if plain += n + 1; plain >= MaxName {
				return 0, 0
			}
			continue
		}
		if n == 0 {
			if next == 0 {
				next = off + 1
			}
			if *e -= Effort(cost + plain); *e < 0 {
				return 0, 0
			}
			return plain + 1, next
		}
		if hops++; n < 0xC0 || off+1 >= len(msg) || hops > maxPointers {
			return 0, 0
		}
		to := n&0x3F<<8 | int(msg[off+1])
		if to >= before || to < HeaderLen {
			return 0, 0
		}
		if next == 0 {
			next = off + 2
		}
		cost += pointerCost
		msg = msg[:before] // no name holds a part of itself
		off, before = to, to
	}
	return 0, 0
}
