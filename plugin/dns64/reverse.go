package dns64

import (
	"context"
	"net"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// ip6arpa is the zone of reverse names of IPv6 addresses.
var ip6arpa = wire.MustName("ip6.arpa.")

// reverse is the IPv4 address in the address that a PTR query is about. It reports false for all others, and if the
// option is off.
func (d *DNS64) reverse(qtype uint16, name string) (four net.IP, ok bool) {
	if !d.ptr || qtype != dns.TypePTR || dnsutil.IsReverse(name) != 2 {
		return nil, false
	}
	ip := net.ParseIP(dnsutil.ExtractAddressFromReverse(name))
	if ip == nil {
		return nil, false
	}
	four = extract(d.Prefix, ip)
	return four, four != nil
}

// servePTR answers with an alias to the reverse name of an IPv4 address, and what that leads to (RFC 6147 §5.3.1).
func (d *DNS64) servePTR(ctx context.Context, state *request.Request, four net.IP) (int, error) {
	target, err := dns.ReverseAddr(four.String())
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	up, err := d.Upstream.Lookup(ctx, *state, target, dns.TypePTR)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	m := new(dns.Msg).SetReply(state.Req)
	alias := &dns.CNAME{Hdr: dns.RR_Header{Name: state.QName(), Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: negativeTTL}, Target: target}
	m.Answer = append(m.Answer, alias)
	if up != nil {
		m.Rcode, m.RecursionAvailable, m.Truncated = up.Rcode, up.RecursionAvailable, up.Truncated
		m.Answer = append(m.Answer, up.Answer...)
		m.Ns, m.Extra = up.Ns, up.Extra
	}
	return dns.RcodeSuccess, state.W.WriteMsg(m)
}
