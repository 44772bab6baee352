package rrset

import "github.com/coredns/coredns/plugin/pkg/wire"

// layout tells where names stand in the RDATA of a type.
type layout struct {
	lead  int // octets before the first name
	names int
	tail  int // octets behind the last one at least; -1 is exactly none
}

// layouts are the types whose RDATA may be compressed (RFC 1035 §3.3, RFC 3597 §4), and
// those of DNSSEC, whose names some compress all the same.
var layouts = map[uint16]layout{
	wire.TypeNS: {0, 1, -1}, 3: {0, 1, -1}, 4: {0, 1, -1}, wire.TypeCNAME: {0, 1, -1}, wire.TypeSOA: {0, 2, 20},
	7: {0, 1, -1}, 8: {0, 1, -1}, 9: {0, 1, -1}, wire.TypePTR: {0, 1, -1}, 14: {0, 2, -1}, wire.TypeMX: {2, 1, -1},
	17: {0, 2, -1}, 18: {2, 1, -1}, 21: {2, 1, -1}, 24: {18, 1, 1}, 26: {2, 2, -1}, 30: {0, 1, 0}, wire.TypeSRV: {6, 1, -1},
	36: {2, 1, -1}, wire.TypeDNAME: {0, 1, -1}, wire.TypeRRSIG: {18, 1, 1}, TypeNSEC: {0, 1, 0},
}

// expand is the RDATA from off to end of the message without compression, valid until
// the next call. It reports false if the RDATA is malformed.
func (p *parser) expand(typ uint16, off, end int) (rdata []byte, ok bool) {
	switch typ {
	case wire.TypeA:
		return p.msg[off:end], end-off == 4
	case wire.TypeAAAA:
		return p.msg[off:end], end-off == 16
	case 35:
		return p.naptr(off, end)
	}
	l, known := layouts[typ]
	if !known {
		return p.msg[off:end], true
	}
	if end-off < l.lead+l.names {
		return nil, false
	}
	b := append(p.rdata[:0], p.msg[off:off+l.lead]...)
	at := off + l.lead
	for range l.names {
		if b, at = p.name(b, at); at == 0 || at > end {
			return nil, false
		}
	}
	p.rdata = append(b, p.msg[at:end]...)
	switch {
	case l.tail < 0:
		return p.rdata, at == end
	case typ == wire.TypeSOA:
		return p.rdata, end-at == l.tail
	}
	return p.rdata, end-at >= l.tail
}

// Three strings of any length stand before the name, so no row of layouts tells where
// it begins.

// naptr is expand for NAPTR: order, preference, three strings, a name (RFC 3403 §4.1).
func (p *parser) naptr(off, end int) (rdata []byte, ok bool) {
	at := off + 4
	for range 3 {
		if at >= end {
			return nil, false
		}
		at += 1 + int(p.msg[at])
	}
	if at >= end {
		return nil, false
	}
	b, next := p.name(append(p.rdata[:0], p.msg[off:at]...), at)
	p.rdata = b
	return b, next == end
}
