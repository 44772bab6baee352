package wire

import "github.com/miekg/dns"

// MayBeEmpty reports whether RDATA of a type may have no octets. That of unknown types is any octets (RFC 3597 §5).
func MayBeEmpty(typ uint16) bool {
	_, known := dns.TypeToRR[typ]
	return !known || typ == dns.TypeNULL || typ == dns.TypeAPL
}
