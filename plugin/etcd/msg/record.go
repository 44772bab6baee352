package msg

import (
	"net"

	"github.com/miekg/dns"
)

// NewA returns an A record for ip, which must be an IPv4 address.
func (s *Service) NewA(name string, ip net.IP) *dns.A {
	return &dns.A{Hdr: s.header(name, dns.TypeA), A: ip}
}

// NewAAAA returns an AAAA record for ip.
func (s *Service) NewAAAA(name string, ip net.IP) *dns.AAAA {
	return &dns.AAAA{Hdr: s.header(name, dns.TypeAAAA), AAAA: ip}
}

// NewCNAME returns a CNAME record with the target given.
func (s *Service) NewCNAME(name string, target string) *dns.CNAME {
	return &dns.CNAME{Hdr: s.header(name, dns.TypeCNAME), Target: dns.Fqdn(target)}
}

// NewMX returns an MX record for the service's host, with its priority as preference.
func (s *Service) NewMX(name string) *dns.MX {
	return &dns.MX{Hdr: s.header(name, dns.TypeMX), Preference: uint16(s.Priority), Mx: s.target()}
}

// NewNS returns an NS record for the service's host.
func (s *Service) NewNS(name string) *dns.NS {
	return &dns.NS{Hdr: s.header(name, dns.TypeNS), Ns: s.target()}
}

// NewPTR returns a PTR record with the target given.
func (s *Service) NewPTR(name string, target string) *dns.PTR {
	return &dns.PTR{Hdr: s.header(name, dns.TypePTR), Ptr: dns.Fqdn(target)}
}

// NewSRV returns an SRV record for the service's host and port, with the weight given instead of the service's own.
func (s *Service) NewSRV(name string, weight uint16) *dns.SRV {
	return &dns.SRV{
		Hdr:      s.header(name, dns.TypeSRV),
		Priority: uint16(s.Priority),
		Weight:   weight,
		Port:     uint16(s.Port),
		Target:   s.target(),
	}
}

// NewTXT returns a TXT record with the service's text, in strings of at most 255 octets.
func (s *Service) NewTXT(name string) *dns.TXT {
	return &dns.TXT{Hdr: s.header(name, dns.TypeTXT), Txt: chunks(s.Text)}
}

// header returns the header of a record with the owner name.
func (s *Service) header(name string, rrtype uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: s.TTL}
}

// target returns the host as a name without the labels that are to be stripped. A name that has no more labels than
// that stays whole.
func (s *Service) target() string {
	host := dns.Fqdn(s.Host)
	offset := 0
	for range s.TargetStrip {
		var end bool
		if offset, end = dns.NextLabel(host, offset); end {
			return host
		}
	}
	return host[offset:]
}

// chunks cuts text into strings of at most 255 octets. An empty text is one empty string.
func chunks(text string) []string {
	const most = 255
	var list []string
	for len(text) > most {
		list = append(list, text[:most])
		text = text[most:]
	}
	return append(list, text)
}
