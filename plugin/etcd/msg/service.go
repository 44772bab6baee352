package msg

import (
	"net"

	"github.com/miekg/dns"
)

// Service is one service, as it stands in the backend.
type Service struct {
	// Host is an address, or the name of a host.
	Host string `json:"host,omitempty"`
	// Port is that of SRV records; only its lower 16 bits count.
	Port int `json:"port,omitempty"`
	// Priority is that of SRV records, and the preference of MX records; only its lower 16 bits count.
	Priority int `json:"priority,omitempty"`
	// Weight is that of SRV records before it is set in relation to the others'.
	Weight int `json:"weight,omitempty"`
	// Text is the content of a TXT record, in presentation form.
	Text string `json:"text,omitempty"`
	// Mail makes it a mail exchange.
	Mail bool `json:"mail,omitempty"`
	// TTL is that of the records, in seconds.
	TTL uint32 `json:"ttl,omitempty"`
	// TargetStrip is how many labels are taken off the front of the target of SRV, MX and NS records.
	TargetStrip int `json:"targetstrip,omitempty"`
	// Group is what Group selects by.
	Group string `json:"group,omitempty"`
	// Key is where the service stands in the backend. It is no part of what is stored there.
	Key string `json:"-"`
}

// HostType returns what the service is: dns.TypeA or dns.TypeAAAA with the address, which has 4 or 16 octets (one that
// maps an IPv4 address is taken for that), if Host is one. Otherwise there is no address, and the type is dns.TypeTXT
// if there is a Text and dns.TypeCNAME if not.
func (s *Service) HostType() (what uint16, normalized net.IP) {
	ip := net.ParseIP(s.Host)
	if ip == nil {
		if s.Text != "" {
			return dns.TypeTXT, nil
		}
		return dns.TypeCNAME, nil
	}
	if four := ip.To4(); four != nil {
		return dns.TypeA, four
	}
	return dns.TypeAAAA, ip
}
