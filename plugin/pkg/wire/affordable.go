package wire

import "encoding/binary"

// Affordable reports whether the names of msg, with those in RDATA that github.com/miekg/dns reads, are worth the
// effort that a message of its length may cost. It is for whoever has that library unpack what came from outside.
//
// It follows pointers as the library does, also forwards. Where a message is malformed it looks no further, as nobody
// does.
func Affordable(msg []byte) bool {
	if len(msg) < HeaderLen {
		return true
	}
	s := surveyor{msg: msg, left: EffortOf(len(msg))}
	count := func(i int) int { return int(binary.BigEndian.Uint16(msg[4+2*i:])) }
	off := HeaderLen
	for range count(0) {
		if off = s.name(off); off == 0 {
			return s.left >= 0
		}
		off += 4
	}
	for range count(1) + count(2) + count(3) {
		if off = s.record(off); off == 0 {
			return s.left >= 0
		}
	}
	return true
}

// surveyor adds up what names cost.
type surveyor struct {
	msg  []byte
	left Effort
}

// record is where the record at off ends, 0 if there is none or the effort is spent.
func (s *surveyor) record(off int) int {
	at := s.name(off)
	if at == 0 || at+10 > len(s.msg) {
		return 0
	}
	end := at + 10 + int(binary.BigEndian.Uint16(s.msg[at+8:]))
	if end > len(s.msg) {
		return 0
	}
	lead, names := s.names(binary.BigEndian.Uint16(s.msg[at:]), at+10, end)
	for off = at + 10 + lead; names > 0 && off < end; names-- {
		if off = s.name(off); off == 0 {
			return 0
		}
	}
	return end
}

// names tells where names stand in the RDATA of a type, from off to end: behind how many octets, and how many.
func (s *surveyor) names(typ uint16, off, end int) (lead, names int) {
	rdata := s.msg[off:end]
	switch typ {
	case TypeNS, TypeCNAME, TypePTR, TypeDNAME, 3, 4, 7, 8, 9, 23, 30, 47, 249, 250: // MD MF MB ... TSIG
		return 0, 1
	case TypeSOA, 14, 17, 58: // MINFO RP TALINK
		return 0, 2
	case TypeMX, 18, 21, 36, 64, 65, 107: // AFSDB RT KX SVCB HTTPS LP
		return 2, 1
	case 26: // PX
		return 2, 2
	case TypeSRV:
		return 6, 1
	case 24, TypeRRSIG: // SIG
		return 18, 1
	case 35: // NAPTR: order, preference, three strings
		lead = 4
		for range 3 {
			if lead < len(rdata) {
				lead += int(rdata[lead]) + 1
			}
		}
		return lead, 1
	case 45, 260: // IPSECKEY AMTRELAY: a gateway, which is a name if its type says so
		if len(rdata) > 1 && rdata[1] == 3 {
			return gatewayAt(typ), 1
		}
	case 55: // HIP: tag and key, servers up to the end
		if len(rdata) < 4 {
			return 0, 0
		}
		return 4 + int(rdata[0]) + int(binary.BigEndian.Uint16(rdata[2:])), len(rdata)
	}
	return 0, 0
}

// gatewayAt is how many octets stand before the gateway of an IPSECKEY or AMTRELAY record.
func gatewayAt(typ uint16) int {
	if typ == 45 {
		return 3 // precedence, type, algorithm
	}
	return 2
}

// name is where the name at off ends as it stands there, 0 if there is none or the effort is spent.
func (s *surveyor) name(off int) (next int) {
	plain, labels, hops := 1, 0, 0
	for off < len(s.msg) {
		n := int(s.msg[off])
		switch {
		case n == 0:
			if next == 0 {
				next = off + 1
			}
			if s.left -= Effort(plain + labelCost*labels + pointerCost*hops); s.left < 0 {
				return 0
			}
			return next
		case n <= MaxLabel:
			off += n + 1
			labels++
			if plain += n + 1; plain > MaxName {
				return 0
			}
		case n >= 0xC0:
			if hops++; off+1 >= len(s.msg) || hops > maxPointers {
				return 0
			}
			if next == 0 {
				next = off + 2
			}
			off = n&0x3F<<8 | int(s.msg[off+1])
		default:
			return 0
		}
	}
	return 0
}
