package wire

import "github.com/miekg/dns"

// MayBeEmpty reports whether RDATA of a type may have no octets. That of unknown types is any octets (RFC 3597 §5).
func MayBeEmpty(typ uint16) bool {
	_, known := dns.TypeToRR[typ]
	return !known || typ == dns.TypeNULL || typ == dns.TypeAPL
}

// IsMeta reports whether a type is one of questions or messages, which no record of a zone has (RFC 6895 §3.1).
func IsMeta(typ uint16) bool { return typ == 0 || typ == TypeOPT || typ >= 128 && typ <= 255 }
