package replies

import (
	"encoding/binary"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file finds the OPT record of a message (RFC 6891) and its options. Offsets count octets from the begin of the
// message, and 0 stands for no OPT record, as no record can begin there.

const optFixed = 11 // octets of an OPT record before its options (RFC 6891 §6.1.2)

// optionsLen is how many octets of options the OPT record at opt has.
func optionsLen(b []byte, opt int) int { return int(binary.BigEndian.Uint16(b[opt+9:])) }

// Option is the data of the first option with a code of the OPT record at opt, which is whole; 0 is no record.
func Option(b []byte, opt int, code uint16) (data []byte, ok bool) {
	if opt == 0 {
		return nil, false
	}
	e := wire.EDNS{Options: b[opt+optFixed : opt+optFixed+optionsLen(b, opt)]}
	return e.Option(code)
}

// AppendWithOption appends query, with one more option in its OPT record at opt, to b.
func AppendWithOption(b, query []byte, opt int, code uint16, data []byte) []byte {
	end := opt + optFixed + optionsLen(query, opt)
	start := len(b)
	b = append(slices.Grow(b, len(query)+4+len(data)), query[:end]...)
	b = binary.BigEndian.AppendUint16(b, code)
	b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	b = append(append(b, data...), query[end:]...)
	binary.BigEndian.PutUint16(b[start+opt+9:], uint16(end-opt-optFixed+4+len(data)))
	return b
}

// FindOPT is where the first OPT record of a message with one question begins, 0 if there is none or something
// before it is odd.
func FindOPT(b []byte) int {
	if len(b) < wire.HeaderLen {
		return 0
	}
	left := wire.EffortOf(len(b))
	off := behindName(b, wire.HeaderLen, &left)
	if off == 0 {
		return 0
	}
	opt := 0
	EachRecord(b, off+4, &left, func(off, at int, additional bool) bool {
		if additional && binary.BigEndian.Uint16(b[at:]) == wire.TypeOPT && at == off+1 {
			opt = off
		}
		return opt == 0
	})
	return opt
}

// EachRecord goes through the records of a message, from off where the first one begins, as long as they are whole and
// f returns true. It is told where one begins, where its owner ends, and whether it is of the additional section.
func EachRecord(b []byte, off int, left *wire.Effort, f func(off, at int, additional bool) bool) {
	counts := binary.BigEndian.Uint64(b[4:])
	main := int(counts>>32&0xFFFF) + int(counts>>16&0xFFFF)
	for i := range main + int(counts&0xFFFF) {
		at := behindName(b, off, left)
		if at == 0 || at+10 > len(b) {
			return
		}
		end := at + 10 + int(binary.BigEndian.Uint16(b[at+8:]))
		if end > len(b) || !f(off, at, i >= main) {
			return
		}
		off = end
	}
}

// skipName is the offset behind the name at off as it stands there, 0 if it is cut short.
func skipName(b []byte, off int) int {
	for off < len(b) {
		switch n := int(b[off]); {
		case n == 0:
			return off + 1
		case n <= wire.MaxLabel:
			off += n + 1
		case off+1 < len(b):
			return off + 2
		default:
			return 0
		}
	}
	return 0
}
