package replies

import (
	"encoding/binary"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// This file reads RDATA as upstreams send it day by day (RFC 1035 §3.3, RFC 4034, RFC 5155, RFC 9460). Whatever is not
// understood here is left to the slow way, so there is no harm in what it does not know.

// ordinary reports whether b[rd:] is RDATA of a type that is known here, and whole. b is the message up to
// the RDATA's end, so that names in it may point back. left is what names may still cost.
func ordinary(typ uint16, b []byte, rd int, left *wire.Effort) bool {
	n := len(b) - rd
	if n == 0 {
		return typ == wire.TypeOPT || unknown(typ)
	}
	switch typ {
	case wire.TypeA:
		return n == 4
	case wire.TypeAAAA:
		return n == 16
	case wire.TypeNS, wire.TypeCNAME, wire.TypePTR, wire.TypeDNAME:
		return behindName(b, rd, left) == len(b)
	case wire.TypeMX:
		return n > 2 && behindName(b, rd+2, left) == len(b)
	case wire.TypeSRV:
		return n > 6 && behindName(b, rd+6, left) == len(b)
	case wire.TypeSOA:
		mbox := behindName(b, rd, left)
		if mbox == 0 {
			return false
		}
		serial := behindName(b, mbox, left)
		return serial != 0 && serial+20 == len(b)
	case wire.TypeTXT:
		for rd < len(b) {
			rd += int(b[rd]) + 1
		}
		return rd == len(b)
	case wire.TypeRRSIG:
		return n > 18 && behindName(b, rd+18, left) != 0
	case dns.TypeDS, dns.TypeDNSKEY:
		return n > 4
	case dns.TypeNSEC:
		next := behindName(b, rd, left)
		return next != 0 && ordinaryBitmap(b[next:])
	case dns.TypeNSEC3:
		return ordinaryNSEC3(b[rd:])
	case dns.TypeSVCB, dns.TypeHTTPS:
		if n < 3 {
			return false
		}
		params := behindName(b, rd+2, left)
		return params != 0 && ordinaryParams(b[params:])
	case wire.TypeOPT:
		return ordinaryOptions(b[rd:])
	}
	return unknown(typ)
}

// unknown reports whether github.com/miekg/dns takes the RDATA of a type as it comes (RFC 3597).
func unknown(typ uint16) bool {
	_, known := dns.TypeToRR[typ]
	return !known
}

// behindName is the offset behind the name at off, 0 if there is none.
func behindName(b []byte, off int, left *wire.Effort) int {
	_, next := left.Name(b, off)
	return next
}

// ordinaryBitmap reports whether b is the types that NSEC and NSEC3 records tell (RFC 4034 §4.1.2).
func ordinaryBitmap(b []byte) bool {
	for last := -1; len(b) > 0; {
		if len(b) < 3 || int(b[0]) <= last || b[1] == 0 || b[1] > 32 || len(b) < 2+int(b[1]) {
			return false
		}
		last = int(b[0])
		b = b[2+int(b[1]):]
	}
	return true
}

// ordinaryNSEC3 reports whether b is RDATA of RFC 5155 §3.2: four octets, salt and hash with their lengths, types.
func ordinaryNSEC3(b []byte) bool {
	if b = b[min(4, len(b)):]; len(b) < 1 || len(b) < 2+int(b[0]) {
		return false
	}
	b = b[1+int(b[0]):]
	return b[0] > 0 && len(b) >= 1+int(b[0]) && ordinaryBitmap(b[1+int(b[0]):])
}

// ordinaryParams reports whether b is parameters of a service (RFC 9460 §2.2) of which each, as far as known, has a
// proper value.
func ordinaryParams(b []byte) bool {
	for last := -1; len(b) > 0; {
		if len(b) < 4 {
			return false
		}
		key, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if len(b) < 4+n || int(key) <= last || !ordinaryParam(dns.SVCBKey(key), b[4:4+n]) {
			return false
		}
		last = int(key)
		b = b[4+n:]
	}
	return true
}

// ordinaryParam reports whether value is proper for the parameter key (RFC 9460 §7 and §14.3.2, RFC 9461 §5). A list
// that refers to other parameters is left to the slow way.
func ordinaryParam(key dns.SVCBKey, value []byte) bool {
	switch n := len(value); key {
	case dns.SVCB_ALPN:
		at := 0
		for at < n {
			at += int(value[at]) + 1
		}
		return at == n
	case dns.SVCB_NO_DEFAULT_ALPN:
		return n == 0
	case dns.SVCB_PORT:
		return n == 2
	case dns.SVCB_IPV4HINT:
		return n > 0 && n%4 == 0
	case dns.SVCB_IPV6HINT:
		for i := 0; i+16 <= n; i += 16 {
			if netip.AddrFrom16([16]byte(value[i:])).Is4In6() {
				return false
			}
		}
		return n > 0 && n%16 == 0
	case dns.SVCB_ECHCONFIG, dns.SVCB_DOHPATH:
		return true
	case dns.SVCB_MANDATORY, dns.SVCB_OHTTP:
		return false // seldom used
	}
	return key != 1<<16-1 // reserved
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
