// Package rrutil has functions on lists of records. Start at SubTypeSignature.
package rrutil

import "github.com/miekg/dns"

// SubTypeSignature is those of rrs that are RRSIG records and cover subtype, in the order of rrs; nil if there are none.
func SubTypeSignature(rrs []dns.RR, subtype uint16) []dns.RR {
	var sigs []dns.RR
	for _, rr := range rrs {
		if sig, ok := rr.(*dns.RRSIG); ok && sig.TypeCovered == subtype {
			sigs = append(sigs, rr)
		}
	}
	return sigs
}
