// Package response tells replies apart: a positive answer, NXDOMAIN, NODATA, a referral, and so on.
//
//	message ──Typify──▶ Type ──Classify──▶ Class
//
// The cache stores, the log selects and dnssec signs by these. The functions are pure and may be called from
// any number of goroutines at the same time, as long as nobody changes the message meanwhile. Start at Typify.
package response

import (
	"time"

	"github.com/miekg/dns"
)

// Typify returns the type of m at the time t, and its OPT record, nil if it has none.
//
// The time matters only for a message with the DO bit: if one of its signatures is outside its validity
// period (RFC 4034 §3.1.5), the type is OtherError. m may be nil and is only read. Typify does not allocate.
func Typify(m *dns.Msg, t time.Time) (Type, *dns.OPT) {
	if m == nil {
		return OtherError, nil
	}
	opt := m.IsEdns0()
	switch {
	case m.Opcode == dns.OpcodeUpdate:
		return Update, opt
	case m.Opcode == dns.OpcodeNotify, isTransfer(m):
		return Meta, opt
	case opt != nil && opt.Do() && hasInvalidSignature(m, t):
		return OtherError, opt
	}
	return typify(m), opt
}

// typify decides by the rcode and by which sections hold what.
func typify(m *dns.Msg) Type {
	hasAnswer := len(m.Answer) > 0
	switch m.Rcode {
	case dns.RcodeSuccess:
		switch {
		case hasAnswer:
			return NoError
		case hasType(m.Ns, dns.TypeSOA):
			return NoData
		// A SOA record goes before it: some denials have NS records, too.
		case hasType(m.Ns, dns.TypeNS):
			return Delegation
		}
		return NoError
	case dns.RcodeNameError:
		// An alias that leads to a name which does not exist: neither kind of answer.
		if hasAnswer {
			return OtherError
		}
		return NameError
	case dns.RcodeServerFailure, dns.RcodeNotImplemented:
		return ServerError
	}
	return OtherError
}

// isTransfer reports whether m is about a zone transfer.
func isTransfer(m *dns.Msg) bool {
	if len(m.Question) == 0 {
		return false
	}
	qtype := m.Question[0].Qtype
	return qtype == dns.TypeAXFR || qtype == dns.TypeIXFR
}

// hasType reports whether one of the records is of a type.
func hasType(rrs []dns.RR, rrtype uint16) bool {
	for _, rr := range rrs {
		if rr.Header().Rrtype == rrtype {
			return true
		}
	}
	return false
}

// hasInvalidSignature tells whether any section has an RRSIG that is not valid at t.
func hasInvalidSignature(m *dns.Msg, t time.Time) bool {
	for _, section := range [...][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range section {
			if sig, ok := rr.(*dns.RRSIG); ok && !sig.ValidityPeriod(t) {
				return true
			}
		}
	}
	return false
}
