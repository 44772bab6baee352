package zonekeys

import (
	"fmt"
	"time"

	"github.com/miekg/dns"
)

// Span is from when to when signatures count.
type Span struct{ Inception, Expiration time.Time }

// Sign is the signatures of an RRset, one by each key. origin is the zone. The records of set have ttl.
func Sign(keys []Pair, origin string, set []dns.RR, ttl uint32, span Span) ([]dns.RR, error) {
	sigs := make([]dns.RR, 0, len(keys))
	for _, k := range keys {
		// The number of labels, and the type, are told by the records (RFC 4034 §3.1).
		sig := &dns.RRSIG{Algorithm: k.Public.Algorithm, KeyTag: k.KeyTag, SignerName: origin, OrigTtl: ttl,
			Inception: uint32(span.Inception.Unix()), Expiration: uint32(span.Expiration.Unix())}
		sig.Hdr.Ttl = ttl
		if err := SignSet(sig, k.Private, set); err != nil {
			h := set[0].Header()
			return nil, fmt.Errorf("%s %s with key %d: %w", h.Name, dns.TypeToString[h.Rrtype], k.KeyTag, err)
		}
		sigs = append(sigs, sig)
	}
	return sigs, nil
}

// Records is the keys as a zone has them, and the CDS and CDNSKEY records from which the zone above learns of them (RFC
// 7344).
func Records(keys []Pair, origin string, ttl uint32) (all []dns.RR) {
	for _, k := range keys {
		// A copy, with the zone's own name and TTL: the file may have the name in other case, and has no TTL mostly.
		key := dns.Copy(k.Public).(*dns.DNSKEY)
		key.Hdr = dns.RR_Header{Name: origin, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: ttl}
		all = append(all, key, key.ToDS(dns.SHA1).ToCDS(), key.ToDS(dns.SHA256).ToCDS(), key.ToCDNSKEY())
	}
	return all
}

// Signs reports whether the RRset of a type is signed: at a zone cut the proofs and the DS records alone (RFC 4035
// §2.2).
func Signs(t uint16, cut bool) bool {
	switch t {
	case dns.TypeRRSIG:
		return false
	case dns.TypeDS, dns.TypeNSEC, dns.TypeNSEC3:
		return true
	}
	return !cut
}
