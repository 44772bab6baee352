package erratic

import (
	"net"

	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// copies is how many times a large answer holds the same record.
const copies = 30

var (
	address4 = net.ParseIP("192.0.2.53").To4()
	address6 = net.ParseIP("2001:db8::53")
)

// reply is the reply to a query, nil for types that nothing is known of. A truncated zone transfer lacks its end.
func (e *faults) reply(state *request.Request, truncated bool) *dns.Msg {
	m := new(dns.Msg).SetReply(state.Req)
	m.Authoritative, m.Truncated = true, truncated
	name := state.QName()
	switch state.QType() {
	case dns.TypeA:
		m.Answer = []dns.RR{&dns.A{Hdr: header(name, dns.TypeA), A: address4}}
		for e.large && len(m.Answer) < copies {
			m.Answer = append(m.Answer, m.Answer[0])
		}
	case dns.TypeAAAA:
		m.Answer = []dns.RR{&dns.AAAA{Hdr: header(name, dns.TypeAAAA), AAAA: address6}}
	case dns.TypeAXFR:
		m.Answer = zone(name)
		if truncated {
			m.Answer = m.Answer[:len(m.Answer)-1]
		}
	default:
		return nil
	}
	return m
}

func header(name string, typ uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: typ, Class: dns.ClassINET}
}

// zone is a small zone in the order of a transfer: it begins and ends with its SOA record (RFC 5936 §2.2).
func zone(name string) []dns.RR {
	below := func(label string) string {
		if name == "." {
			return label + "."
		}
		return label + "." + name
	}
	a, b := below("a"), below("b")
	soa := &dns.SOA{
		Hdr: header(name, dns.TypeSOA), Ns: a, Mbox: below("hostmaster"),
		Serial: 2018050825, Refresh: 7200, Retry: 3600, Expire: 1209600, Minttl: 3600,
	}
	return []dns.RR{
		soa,
		&dns.NS{Hdr: header(name, dns.TypeNS), Ns: a},
		&dns.NS{Hdr: header(name, dns.TypeNS), Ns: b},
		&dns.AAAA{Hdr: header(a, dns.TypeAAAA), AAAA: address6},
		&dns.AAAA{Hdr: header(b, dns.TypeAAAA), AAAA: net.ParseIP("2001:db8::54")},
		soa,
	}
}
