package validate

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// place tells where the names of RDATA stand that are signed in lower case.
type place struct{ lead, names int }

// lowered are the types whose names are signed in lower case (RFC 4034 §6.2);
// NSEC is none of them (RFC 6840 §5.1).
var lowered = map[uint16]place{
	2: {0, 1}, 3: {0, 1}, 4: {0, 1}, 5: {0, 1}, 6: {0, 2}, 7: {0, 1}, 8: {0, 1}, 9: {0, 1}, 12: {0, 1}, 14: {0, 2}, 15: {2, 1}, 17: {0, 2},
	18: {2, 1}, 21: {2, 1}, 24: {18, 1}, 26: {2, 2}, 30: {0, 1}, 33: {6, 1}, 36: {2, 1}, 39: {0, 1}, 46: {18, 1},
}

// canonical is RDATA as it is signed. It is rdata itself if no letter changes.
func canonical(typ uint16, rdata string) string {
	p, ok := lowered[typ]
	if typ == 35 { // NAPTR: three strings stand before the name (RFC 3403 §4.1)
		p, ok = place{4, 1}, true
		for range 3 {
			if p.lead < len(rdata) {
				p.lead += 1 + int(rdata[p.lead])
			}
		}
	}
	if !ok || p.lead >= len(rdata) {
		return rdata
	}
	end := p.lead
	for range p.names {
		for end < len(rdata) && rdata[end] != 0 {
			end += 1 + int(rdata[end])
		}
		end = min(end+1, len(rdata))
	}
	low := rrset.Lower(rdata[p.lead:end])
	if low == rdata[p.lead:end] {
		return rdata
	}
	return rdata[:p.lead] + low + rdata[end:]
}

// rdatas is the RDATA of an RRset as it is signed: in canonical form and
// order, each once (RFC 4034 §6.3).
func rdatas(s *rrset.Set) []string {
	all := make([]string, 0, s.N)
	s.Each(func(r string) bool { all = append(all, canonical(s.Type, r)); return true })
	slices.Sort(all)
	return slices.Compact(all)
}

// signedData appends what a signature of an RRset signs (RFC 4034 §3.1.8.1).
// data is rdatas of the RRset.
func signedData(b []byte, s *rrset.Set, sig *signature, data []string) []byte {
	b = append(b, sig.head...)
	b = append(b, sig.signer...)
	owner := s.Name
	if sig.expanded {
		owner = wildcardOf(rrset.Last(s.Name, sig.labels))
	}
	for _, r := range data {
		b = append(b, owner...)
		b = binary.BigEndian.AppendUint16(b, s.Type)
		b = binary.BigEndian.AppendUint16(b, wire.ClassIN)
		b = binary.BigEndian.AppendUint32(b, sig.ttl)
		b = binary.BigEndian.AppendUint16(b, uint16(len(r)))
		b = append(b, r...)
	}
	return b
}

// wildcardOf is the wildcard below a name.
func wildcardOf(name string) string { return "\x01*" + name }

// Names and types are compared as they lie in the message: in lower case, without
// compression. Package rrset has seen to both.

// compare orders names as RFC 4034 §6.1 does: by labels from the right, octets
// unsigned. Both are in lower case.
func compare(a, b string) int {
	var as, bs [128]int
	an, bn := offsets(a, &as), offsets(b, &bs)
	for i := 1; i <= min(an, bn); i++ {
		x, y := label(a, as[an-i]), label(b, bs[bn-i])
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return an - bn
}

// offsets notes where the labels of a name begin, and is their number.
func offsets(name string, at *[128]int) (n int) {
	for i := 0; i < len(name) && name[i] != 0 && n < len(at); i += int(name[i]) + 1 {
		at[n] = i
		n++
	}
	return n
}

func label(name string, at int) string { return name[at+1 : min(at+1+int(name[at]), len(name))] }

// common is the longest name that both are at or below.
func common(a, b string) string {
	n := min(rrset.Labels(a), rrset.Labels(b))
	for a, b = rrset.Last(a, n), rrset.Last(b, n); a != b; {
		a, b = rrset.Parent(a), rrset.Parent(b)
	}
	return a
}

// nameLen is the octets of the name that b begins with, 0 if there is no whole
// one without compression.
func nameLen(b string) int {
	for i := 0; i < len(b) && i < wire.MaxName; i += int(b[i]) + 1 {
		if b[i] == 0 {
			return i + 1
		}
		if b[i] > 63 {
			return 0
		}
	}
	return 0
}

// Windows of a bitmap stand in order and are never empty. One that breaks that could
// hide a type from one reader and show it to another, so its record is no proof.

// typed reports whether a type bitmap (RFC 4034 §4.1.2) has a type. A
// malformed one has what stands before the fault. It has ANY if it has a type of data: not
// those of records that a name has only as the zone is signed.
func typed(bitmap string, typ uint16) bool {
	if typ == rrset.TypeANY {
		return holdsData(bitmap)
	}
	for len(bitmap) >= 2 {
		n := 2 + int(bitmap[1])
		if n > len(bitmap) {
			return false
		}
		if bitmap[0] == byte(typ>>8) {
			i := 2 + int(typ&0xFF)/8
			return i < n && bitmap[i]&(0x80>>(typ%8)) != 0
		}
		bitmap = bitmap[n:]
	}
	return false
}

func holdsData(bitmap string) bool {
	for len(bitmap) >= 2 {
		n := 2 + int(bitmap[1])
		if n > len(bitmap) {
			return false
		}
		for i := range 8 * (n - 2) {
			if bitmap[2+i/8]&(0x80>>(i%8)) == 0 {
				continue
			}
			switch typ := uint16(bitmap[0])<<8 | uint16(i); typ {
			case typeRRSIG, rrset.TypeNSEC, typeNX:
			default:
				return true
			}
		}
		bitmap = bitmap[n:]
	}
	return false
}

// wellFormed reports whether a type bitmap is one (RFC 4034 §4.1.2): windows
// in order, 1 to 32 octets each.
func wellFormed(bitmap string) bool {
	for last := -1; len(bitmap) > 0; {
		if len(bitmap) < 3 || int(bitmap[0]) <= last || bitmap[1] < 1 || bitmap[1] > 32 || 2+int(bitmap[1]) > len(bitmap) {
			return false
		}
		last = int(bitmap[0])
		bitmap = bitmap[2+int(bitmap[1]):]
	}
	return true
}
