package zone

import (
	"iter"
)

// Node is what stands at one name, a view into the zone's memory:
//
//	flags 1 | prefix length 1 | prefix | number of RRsets 2 | RRsets
//
// The prefix is the name without the zone's origin. RRsets stand in the order of their types.
type Node []byte

// Flags of nodes.
const (
	isCut       = 1 << iota // has NS records and is not the apex
	hasDNAME                // has a DNAME record
	hasCNAME                // has a CNAME record
	hasWildcard             // has a child "*"
	occluded                // lies below a cut or a DNAME
)

func (n Node) flags() byte    { return n[0] }
func (n Node) prefix() []byte { return n[2 : 2+int(n[1])] }

// name is the node's whole name, in memory of its own.
func (n Node) name(z *Zone) []byte {
	return append(append(make([]byte, 0, int(n[1])+len(z.origin)), n.prefix()...), z.origin...)
}

// Name is the node's name in z, in memory of its own.
func (n Node) Name(z *Zone) []byte { return n.name(z) }

// Empty reports whether the node is an empty non-terminal.
func (n Node) Empty() bool { return u16(n[2+int(n[1]):]) == 0 }

// IsCut reports whether the node is a zone cut, Occluded whether it lies below one or below a DNAME, so
// that it is never answered from.
func (n Node) IsCut() bool    { return n.flags()&isCut != 0 }
func (n Node) Occluded() bool { return n.flags()&occluded != 0 }

// sets is where the RRsets begin, and their number.
func (n Node) sets() (b []byte, count int) {
	b = n[2+int(n[1]):]
	return b[2:], int(u16(b))
}

// Set is the RRset of a type, nil if there is none. Signatures belong to the RRset that they cover:
// for type RRSIG it is those only that cover no RRset of the node.
func (n Node) Set(typ uint16) RRset {
	b, count := n.sets()
	for ; count > 0; count-- {
		if t := u16(b); t >= typ {
			if t == typ {
				return RRset(b)
			}
			return nil
		}
		b = RRset(b).behind()
	}
	return nil
}

// Sets is all RRsets of the node, in the order of their types.
func (n Node) Sets() iter.Seq[RRset] {
	return func(yield func(RRset) bool) {
		b, count := n.sets()
		for ; count > 0; count-- {
			if !yield(RRset(b)) {
				return
			}
			b = RRset(b).behind()
		}
	}
}

// RRset is the records of one type at one name, and behind them, if they are signed, the RRset of
// their signatures:
//
//	type 2 | number of records 2 | signed 1 bit, octets of the records 31 bits | records
type RRset []byte

const (
	setHeader = 8
	setSigned = 1 << 31
)

func (s RRset) Type() uint16 { return u16(s) }
func (s RRset) Len() int     { return int(u16(s[2:])) }
func (s RRset) size() int    { return int(u32(s[4:]) &^ setSigned) }
func (s RRset) signed() bool { return s[4]&0x80 != 0 }

// Signatures is the RRSIG records that cover the set, nil if there are none.
func (s RRset) Signatures() RRset {
	if s == nil || !s.signed() {
		return nil
	}
	return s[setHeader+s.size():]
}

// behind is what stands behind the set and its signatures.
func (s RRset) behind() []byte {
	size := u32(s[4:])
	b := s[setHeader+int(size&^setSigned):]
	if size&setSigned != 0 {
		b = b[setHeader+int(u32(b[4:])):]
	}
	return b
}

// Records is the records of the set, in the order in which they were added. The nil set has none.
func (s RRset) Records() Records {
	if s == nil {
		return nil
	}
	return Records(s[setHeader : setHeader+s.size()])
}

// Records is records one after the other; it is empty behind the last:
//
//	TTL 4 | octets of the RDATA in full 2 | octets of data 2 | number of pointers 1 | where they go 2 each | data
//
// Names in data that end in the origin end in two octets for a pointer to it, if the type's names
// may be compressed.
type Records []byte

const recordHeader = 9

// TTL is the first record's TTL in seconds.
func (r Records) TTL() uint32 { return u32(r) }

func (r Records) plain() int { return int(u16(r[4:])) }

// Data is the RDATA of the first record, of a type without names.
func (r Records) Data() []byte {
	data, _ := r.data()
	return data
}

// data is the data of the first record, and where pointers go in it.
func (r Records) data() (data, fix []byte) {
	n, f := int(u16(r[6:])), 2*int(r[8])
	return r[recordHeader+f : recordHeader+f+n], r[recordHeader : recordHeader+f]
}

// Next is the records behind the first one.
func (r Records) Next() Records { return r[recordHeader+2*int(r[8])+int(u16(r[6:])):] }

// AppendRData appends the first record's RDATA in full; origin is that of the zone that the record is from.
func (r Records) AppendRData(b, origin []byte) []byte {
	data, fix := r.data()
	at := 0
	for ; len(fix) > 0; fix = fix[2:] {
		to := int(u16(fix))
		b = append(b, data[at:to]...)
		b = append(b, origin...)
		at = to + 2
	}
	return append(b, data[at:]...)
}
