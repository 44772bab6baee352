package zone

import "github.com/coredns/coredns/plugin/pkg/wire"

// Types that the package has to know beside those of package wire.
const (
	typeISDN       = 20 // whose second string may be left out
	typeDS         = 43
	typeNSEC       = 47
	typeNSEC3      = 50
	typeNSEC3PARAM = 51
	typeSVCB       = 64
	typeHTTPS      = 65
)

// rdataNames tells where names stand in the RDATA of a type: behind how many octets, how
// many, and whether they may be compressed (RFC 3597 §4).
func rdataNames(typ uint16) (lead, names int, point bool) {
	switch typ {
	case wire.TypeNS, wire.TypeCNAME, wire.TypePTR:
		return 0, 1, true
	case wire.TypeMX:
		return 2, 1, true
	case wire.TypeSOA:
		return 0, 2, true
	case wire.TypeSRV:
		return 6, 1, false
	case wire.TypeDNAME:
		return 0, 1, false
	case typeSVCB, typeHTTPS:
		return 2, 1, false
	}
	return 0, 0, false
}

// lowered reports whether the names of a type are kept in lower case. It does no harm to signatures, which are
// made over the names in lower case (RFC 4034 §6.2).
func lowered(typ uint16) bool {
	switch typ {
	case wire.TypeNS, wire.TypeCNAME, wire.TypeMX, wire.TypeSOA:
		return true
	}
	return false
}

// service reports whether a type is SVCB or HTTPS. Their targets are kept in lower case only where no signature and
// no digest covers them, for these are made over the target as it is written (RFC 9460 §2.2, RFC 6840 §5.1).
func service(typ uint16) bool { return typ == typeSVCB || typ == typeHTTPS }

// targetOffset is where a name stands in the RDATA of a type whose target's addresses go into
// the additional section, -1 for all other types.
func targetOffset(typ uint16) int {
	switch typ {
	case wire.TypeNS:
		return 0
	case wire.TypeMX, typeSVCB, typeHTTPS:
		return 2
	case wire.TypeSRV:
		return 6
	}
	return -1
}
