package azure

import (
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/file/mirror"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"
	"github.com/miekg/dns"
)

// or is what p points to, or nothing: the API may leave out anything.
func or[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// records is those of one record set.
func records(p *armdns.RecordSetProperties, warn mirror.Warn) []dns.RR {
	s := &set{RecordSetProperties: p, warn: warn}
	for _, r := range p.ARecords {
		s.address(or(or(r).IPv4Address))
	}
	for _, r := range p.AaaaRecords {
		s.address(or(or(r).IPv6Address))
	}
	for _, r := range p.MxRecords {
		mx := or(r)
		s.named(mx.Exchange, func(to string) dns.RR {
			return &dns.MX{Hdr: s.header(dns.TypeMX), Preference: uint16(or(mx.Preference)), Mx: to}
		})
	}
	for _, r := range p.PtrRecords {
		s.named(or(r).Ptrdname, func(to string) dns.RR { return &dns.PTR{Hdr: s.header(dns.TypePTR), Ptr: to} })
	}
	for _, r := range p.SrvRecords {
		srv := or(r)
		s.named(srv.Target, func(to string) dns.RR {
			return &dns.SRV{
				Hdr: s.header(dns.TypeSRV), Priority: uint16(or(srv.Priority)), Weight: uint16(or(srv.Weight)), Port: uint16(or(srv.Port)), Target: to,
			}
		})
	}
	for _, r := range p.TxtRecords {
		s.text(or(r).Value)
	}
	for _, r := range p.NsRecords {
		s.named(or(r).Nsdname, func(to string) dns.RR { return &dns.NS{Hdr: s.header(dns.TypeNS), Ns: to} })
	}
	for _, r := range p.CaaRecords {
		caa := or(r)
		s.add(&dns.CAA{Hdr: s.header(dns.TypeCAA), Flag: uint8(or(caa.Flags)), Tag: or(caa.Tag), Value: escaped(or(caa.Value))})
	}
	if r := p.CnameRecord; r != nil && or(r.Cname) != "" { // one without is a set that is empty
		s.add(&dns.CNAME{Hdr: s.header(dns.TypeCNAME), Target: dns.Fqdn(or(r.Cname))})
	}
	if r := p.SoaRecord; r != nil {
		s.add(&dns.SOA{
			Hdr: s.header(dns.TypeSOA), Ns: dns.Fqdn(or(r.Host)), Mbox: dns.Fqdn(or(r.Email)), Serial: uint32(or(r.SerialNumber)),
			Refresh: uint32(or(r.RefreshTime)), Retry: uint32(or(r.RetryTime)), Expire: uint32(or(r.ExpireTime)), Minttl: uint32(or(r.MinimumTTL)),
		})
	}
	return s.all
}

// set is a record set, and the records that have been made of it.
type set struct {
	*armdns.RecordSetProperties
	warn mirror.Warn
	all  []dns.RR
}

func (s *set) header(typ uint16) dns.RR_Header {
	return dns.RR_Header{Name: dns.Fqdn(or(s.Fqdn)), Rrtype: typ, Class: dns.ClassINET, Ttl: uint32(or(s.TTL))}
}

func (s *set) add(rr dns.RR) { s.all = append(s.all, rr) }

func (s *set) address(text string) {
	switch a, err := netip.ParseAddr(text); {
	case err != nil:
		s.warn("Failed to process record set %s: %v", or(s.Fqdn), err)
	case a.Is4():
		s.add(&dns.A{Hdr: s.header(dns.TypeA), A: a.AsSlice()})
	default:
		s.add(&dns.AAAA{Hdr: s.header(dns.TypeAAAA), AAAA: a.AsSlice()})
	}
}

// named adds a record that leads to a name. One to no name would be one to the root, which tells of MX and SRV
// records that there is no such service (RFC 7505, RFC 2782).
func (s *set) named(name *string, rr func(to string) dns.RR) {
	if or(name) == "" {
		s.warn("Failed to process record set %s: a record names no target", or(s.Fqdn))
		return
	}
	s.add(rr(dns.Fqdn(*name)))
}

// text adds a TXT record with strings of at most 255 octets, and one at least.
func (s *set) text(values []*string) {
	txt := &dns.TXT{Hdr: s.header(dns.TypeTXT)}
	for _, v := range values {
		for part := range slices.Chunk([]byte(or(v)), 255) {
			txt.Txt = append(txt.Txt, escaped(string(part)))
		}
	}
	if len(txt.Txt) == 0 {
		txt.Txt = []string{""}
	}
	s.add(txt)
}

// escaped is text in which github.com/miekg/dns takes each octet for itself.
func escaped(text string) string {
	var b []byte
	for i := range len(text) {
		if text[i] == '\\' || text[i] == '"' {
			b = append(b, '\\')
		}
		b = append(b, text[i])
	}
	return string(b)
}

// public is a private zone's record set in the form of a public one's.
func public(p *armprivatedns.RecordSetProperties) *armdns.RecordSetProperties {
	out := &armdns.RecordSetProperties{Fqdn: p.Fqdn, TTL: p.TTL}
	for _, r := range p.ARecords {
		out.ARecords = append(out.ARecords, &armdns.ARecord{IPv4Address: or(r).IPv4Address})
	}
	for _, r := range p.AaaaRecords {
		out.AaaaRecords = append(out.AaaaRecords, &armdns.AaaaRecord{IPv6Address: or(r).IPv6Address})
	}
	for _, r := range p.MxRecords {
		out.MxRecords = append(out.MxRecords, &armdns.MxRecord{Exchange: or(r).Exchange, Preference: or(r).Preference})
	}
	for _, r := range p.PtrRecords {
		out.PtrRecords = append(out.PtrRecords, &armdns.PtrRecord{Ptrdname: or(r).Ptrdname})
	}
	for _, r := range p.SrvRecords {
		s := or(r)
		out.SrvRecords = append(out.SrvRecords, &armdns.SrvRecord{Port: s.Port, Priority: s.Priority, Target: s.Target, Weight: s.Weight})
	}
	for _, r := range p.TxtRecords {
		out.TxtRecords = append(out.TxtRecords, &armdns.TxtRecord{Value: or(r).Value})
	}
	if r := p.CnameRecord; r != nil {
		out.CnameRecord = &armdns.CnameRecord{Cname: r.Cname}
	}
	if r := p.SoaRecord; r != nil {
		out.SoaRecord = &armdns.SoaRecord{
			Email: r.Email, ExpireTime: r.ExpireTime, Host: r.Host, MinimumTTL: r.MinimumTTL, RefreshTime: r.RefreshTime, RetryTime: r.RetryTime, SerialNumber: r.SerialNumber,
		}
	}
	return out
}
