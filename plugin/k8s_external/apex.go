package external

import (
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Times of SOA records, in seconds.
const (
	refresh = 7200
	retry   = 1800
	expire  = 86400
)

func (e *External) soa(zone string) *dns.SOA {
	return &dns.SOA{
		Hdr: e.header(zone, dns.TypeSOA), Ns: e.server(zone), Mbox: dnsutil.Join(hostmaster, e.apex, zone),
		Serial: e.source.ExternalSerial(zone), Refresh: refresh, Retry: retry, Expire: expire, Minttl: e.ttl,
	}
}

// server is the name of a zone's name server.
func (e *External) server(zone string) string { return dnsutil.Join("ns1", e.apex, zone) }

func (e *External) ns(zone string) *dns.NS {
	return &dns.NS{Hdr: e.header(zone, dns.TypeNS), Ns: e.server(zone)}
}

// answerApex answers for a zone's own name.
func (e *External) answerApex(m *dns.Msg, state request.Request) {
	switch state.QType() {
	case dns.TypeSOA:
		m.Answer = []dns.RR{e.soa(state.Zone)}
	case dns.TypeNS:
		m.Answer = []dns.RR{e.ns(state.Zone)}
		m.Extra = e.addresses(state, e.server(state.Zone))
	}
}

// answerServers answers for the name below which the name servers stand, and for these.
func (e *External) answerServers(m *dns.Msg, state request.Request, apex string) {
	switch state.Name() {
	case apex:
	case e.server(state.Zone):
		for _, rr := range e.addresses(state, state.QName()) {
			if rr.Header().Rrtype == state.QType() {
				m.Answer = append(m.Answer, rr)
			}
		}
	default:
		m.Rcode = dns.RcodeNameError
	}
}

// addresses is the server's own addresses, at owner.
func (e *External) addresses(state request.Request, owner string) []dns.RR {
	all := e.source.ExternalAddress(state, e.headless)
	for _, rr := range all {
		rr.Header().Name, rr.Header().Ttl = owner, e.ttl
	}
	return all
}
