package proxy

import (
	"encoding/binary"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// ordinary reports whether b[rd:] is RDATA of a type that is known here, and whole. b is the message up to
// the RDATA's end, so that names in it may point back.
func ordinary(typ uint16, b []byte, rd int) bool {
	n := len(b) - rd
	if n == 0 {
		return typ == wire.TypeOPT
	}
	switch typ {
	case wire.TypeA:
		return n == 4
	case wire.TypeAAAA:
		return n == 16
	case wire.TypeNS, wire.TypeCNAME, wire.TypePTR, wire.TypeDNAME:
		return skipName(b, rd) == len(b)
	case wire.TypeMX:
		return n > 2 && skipName(b, rd+2) == len(b)
	case wire.TypeSRV:
		return n > 6 && skipName(b, rd+6) == len(b)
	case wire.TypeSOA:
		mbox := skipName(b, rd)
		if mbox == 0 {
			return false
		}
		serial := skipName(b, mbox)
		return serial != 0 && serial+20 == len(b)
	case wire.TypeTXT:
		for rd < len(b) {
			rd += int(b[rd]) + 1
		}
		return rd == len(b)
	case wire.TypeRRSIG:
		return n > 18 && skipName(b, rd+18) != 0
	case dns.TypeDS, dns.TypeDNSKEY:
		return n > 4
	case wire.TypeOPT:
		return ordinaryOptions(b[rd:])
	}
	return false
}

// ordinaryOptions reports whether b is EDNS options of which each, as far as known, has a proper length.
func ordinaryOptions(b []byte) bool {
	for len(b) > 0 {
		if len(b) < 4 {
			return false
		}
		n := int(binary.BigEndian.Uint16(b[2:]))
		if len(b) < 4+n {
			return false
		}
		switch binary.BigEndian.Uint16(b) {
		case wire.OptionLLQ, wire.OptionUL, wire.OptionECS, wire.OptionExpire, wire.OptionReporting, wire.OptionZoneVersion:
			return false // these have an inside; replies seldom have them
		case wire.OptionEDE:
			if n < 2 {
				return false
			}
		case wire.OptionKeepalive:
			if n != 0 && n != 2 {
				return false
			}
		}
		b = b[4+n:]
	}
	return true
}
