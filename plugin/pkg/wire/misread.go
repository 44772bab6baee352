package wire

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/miekg/dns"
)

// Misread reports whether miekg/dns misreads data of a type, in which no name is compressed. It takes the bit of an
// AMTRELAY record that leaves discovery open (RFC 8777 §4.2.2) for a type of relay, the one bitmap of an NXT record
// (RFC 2535 §5.2) for those of an NSEC record, and makes the subaddress that an ISDN record has not (RFC 1183 §3.2) an
// empty one. As a dns.RR such a record is a *dns.RFC3597.
func Misread(typ uint16, data []byte) bool {
	switch typ {
	case dns.TypeAMTRELAY:
		return len(data) > 1 && data[1]&0x80 != 0 && (data[1] != 0x83 || NameLen(data[2:]) == len(data)-2)
	case dns.TypeISDN:
		return len(data) > 0 && len(data) == 1+int(data[0])
	case dns.TypeNXT:
		n := NameLen(data)
		return n > 0 && len(data)-n <= 16
	}
	return false
}

// UnpackInto makes m the message that b holds, as m.Unpack does, but for records that this would misread. Nothing of
// b is kept.
func UnpackInto(m *dns.Msg, b []byte) error {
	err := m.Unpack(b)
	if err == nil && !hasISDN(m) {
		return nil
	}
	c := bytes.Clone(b)
	hidden := HideMisread(c)
	if hidden == nil || m.Unpack(c) != nil {
		return err
	}
	all := slices.Concat(m.Answer, m.Ns, m.Extra)
	for _, h := range hidden {
		all[h.Record].Header().Rrtype = h.Type
	}
	return nil
}

// hasISDN reports whether m has an ISDN record: such a one is misread without an error.
func hasISDN(m *dns.Msg) bool {
	for _, section := range [...][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range section {
			if _, ok := rr.(*dns.ISDN); ok {
				return true
			}
		}
	}
	return false
}

// Hidden is a record of a message whose type is another one for a while.
type Hidden struct {
	Record int    // of all that the message has
	Off    int    // where its type stands
	Type   uint16 // what this is
}

// HideMisread gives records of a message that would be misread a type that nobody knows, of whose data nothing is read.
func HideMisread(b []byte) (hidden []Hidden) {
	const unknown = 0xFFFE // for private use (RFC 6895 §3.1)
	if len(b) < HeaderLen {
		return nil
	}
	count := func(i int) int { return int(binary.BigEndian.Uint16(b[4+2*i:])) }
	off := HeaderLen
	for range count(0) {
		off += NameSpan(b, off) + 4
	}
	for i := range count(1) + count(2) + count(3) {
		span := NameSpan(b, off)
		at := off + span
		if span == 0 || at+10 > len(b) {
			break
		}
		off = at + 10 + int(binary.BigEndian.Uint16(b[at+8:]))
		if off > len(b) {
			break
		}
		if typ := binary.BigEndian.Uint16(b[at:]); Misread(typ, b[at+10:off]) {
			hidden = append(hidden, Hidden{i, at, typ})
			binary.BigEndian.PutUint16(b[at:], unknown)
		}
	}
	return hidden
}
