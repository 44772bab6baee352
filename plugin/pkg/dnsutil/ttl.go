package dnsutil

import (
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/response"
)

// Bounds of the TTL of a whole message.
const (
	// MinimalDefaultTTL is the TTL of messages that have none of their own.
	MinimalDefaultTTL = 5 * time.Second
	// MaximumDefaultTTL is the greatest TTL that MinimalTTL returns.
	MaximumDefaultTTL = 1 * time.Hour
	// MaximumDefaulTTL is an old spelling of MaximumDefaultTTL.
	//
	// Deprecated: use MaximumDefaultTTL.
	MaximumDefaulTTL = MaximumDefaultTTL
)

// MinimalTTL is MinimalTTLWithMaximum with MaximumDefaultTTL.
func MinimalTTL(m *dns.Msg, mt response.Type) time.Duration {
	return MinimalTTLWithMaximum(m, mt, MaximumDefaultTTL)
}

// MinimalTTLWithMaximum returns how long m, a message of the type mt, may be kept: the least TTL of all its
// records, at most maximumTTL. The OPT record has no TTL and does not count. Messages of other types than
// NoError, NameError and NoData and messages without records may be kept for MinimalDefaultTTL.
//
// m is only read. The function does not allocate.
func MinimalTTLWithMaximum(m *dns.Msg, mt response.Type, maximumTTL time.Duration) time.Duration {
	if mt != response.NoError && mt != response.NameError && mt != response.NoData {
		return MinimalDefaultTTL
	}
	least, found := maximumTTL, false
	for _, section := range [...][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range section {
			h := rr.Header()
			if h.Rrtype == dns.TypeOPT {
				continue
			}
			found = true
			least = min(least, time.Duration(h.Ttl)*time.Second)
		}
	}
	if !found {
		return MinimalDefaultTTL
	}
	return least
}
