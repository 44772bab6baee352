package plugin

import (
	"context"
	"fmt"

	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Times of the SOA record, in seconds.
const (
	soaTTL     = 300 // at most
	soaRefresh = 7200
	soaRetry   = 1800
	soaExpire  = 86400
)

// NS returns the NS records of zone, and their addresses as extra. The name servers are the services at ns.dns.ZONE;
// each must have an address for its host, and its name is made of its key. The owner is the name of state.
func NS(ctx context.Context, b ServiceBackend, zone string, state request.Request, opt Options) (records, extra []dns.RR, err error) {
	services, err := b.Services(ctx, asking(state, dnsutil.Join("ns.dns", zone), state.QType()), false, opt)
	if err != nil {
		return nil, nil, err
	}
	var seen tally[string]
	t := targets{}
	for i := range services {
		s := services[i]
		what, ip := s.HostType()
		if what != dns.TypeA && what != dns.TypeAAAA {
			return nil, nil, fmt.Errorf("NS record must be an IP address: %s", s.Host)
		}
		s.Host = msg.Domain(s.Key)
		rr := s.NewNS(state.QName())
		if !isName(rr.Ns) {
			continue
		}
		if seen.first(rr.Ns) {
			records = append(records, rr)
		}
		t.addAddress(&s, rr.Ns, ip)
	}
	return records, t.extra, nil
}

// SOA returns the SOA record of zone. It looks at nothing of state itself, which may be empty.
func SOA(_ context.Context, b ServiceBackend, zone string, state request.Request, _ Options) ([]dns.RR, error) {
	minimum := b.MinTTL(state)
	return []dns.RR{&dns.SOA{
		Hdr:     dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: min(minimum, soaTTL)},
		Ns:      dnsutil.Join("ns.dns", zone),
		Mbox:    dnsutil.Join("hostmaster", zone),
		Serial:  b.Serial(state),
		Refresh: soaRefresh,
		Retry:   soaRetry,
		Expire:  soaExpire,
		Minttl:  minimum,
	}}, nil
}
