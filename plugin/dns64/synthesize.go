package dns64

import (
	"net"

	"github.com/miekg/dns"
)

// negativeTTL is how long a reply holds if nothing tells how long there will be no AAAA records, in seconds (RFC 6147 §5.1.7).
const negativeTTL = 600

// Synthesize is the reply to origReq that is made of resp, a reply with A records, because origResponse had no AAAA records. The
// messages are only read; the reply shares records with resp.
func (d *DNS64) Synthesize(origReq, origResponse, resp *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetReply(origReq)
	m.Rcode, m.Authoritative, m.RecursionAvailable, m.Truncated = resp.Rcode, resp.Authoritative, resp.RecursionAvailable, resp.Truncated
	most := noAAAAFor(origResponse)
	for _, rr := range resp.Answer {
		a, ok := rr.(*dns.A)
		if !ok {
			m.Answer = append(m.Answer, rr)
			continue
		}
		h := a.Hdr
		h.Rrtype, h.Ttl = dns.TypeAAAA, min(h.Ttl, most)
		m.Answer = append(m.Answer, &dns.AAAA{Hdr: h, AAAA: embed(d.Prefix, a.A)})
	}
	m.Ns, m.Extra = resp.Ns, resp.Extra
	return m
}

// noAAAAFor is for how many seconds m says that there are no AAAA records.
func noAAAAFor(m *dns.Msg) uint32 {
	if m != nil {
		for _, rr := range m.Ns {
			if soa, ok := rr.(*dns.SOA); ok {
				return soa.Hdr.Ttl
			}
		}
	}
	return negativeTTL
}

// reserved is the octet that stays 0 in addresses with a prefix of 64 bits and less (RFC 6052 §2.2).
const reserved = 8

// embed puts an IPv4 address behind a prefix (RFC 6052 §2.2).
func embed(prefix *net.IPNet, four net.IP) net.IP {
	ip := make(net.IP, net.IPv6len)
	copy(ip, prefix.IP.To16().Mask(prefix.Mask))
	ones, _ := prefix.Mask.Size()
	at := ones / 8
	for _, octet := range four.To4() {
		if at == reserved {
			at++
		}
		ip[at] = octet
		at++
	}
	return ip
}

// extract is the IPv4 address behind a prefix, nil if ip has another prefix or could not have been made by embed.
func extract(prefix *net.IPNet, ip net.IP) net.IP {
	if !prefix.Contains(ip) {
		return nil
	}
	ones, _ := prefix.Mask.Size()
	at := ones / 8
	four := make(net.IP, net.IPv4len)
	for i := range four {
		if at == reserved {
			at++
		}
		four[i] = ip[at]
		at++
	}
	if !embed(prefix, four).Equal(ip) {
		return nil
	}
	return four
}
