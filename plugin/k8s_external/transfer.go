package external

import (
	"errors"
	"maps"
	"net"
	"slices"

	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/transfer"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// errNotRead is the error of a transfer that comes too early: a secondary would drop what is missing.
var errNotRead = errors.New("not all services have been read yet")

// Transfer implements transfer.Transferer.
func (e *External) Transfer(zone string, serial uint32) (<-chan []dns.RR, error) {
	if e.source == nil || !slices.Contains(e.Zones, zone) {
		return nil, transfer.ErrNotAuthoritative
	}
	if source, ok := e.source.(readier); ok && !source.Ready() {
		return nil, errNotRead
	}
	soa := e.soa(zone)
	out := make(chan []dns.RR)
	go func() {
		defer close(out)
		if serial != 0 && serial >= soa.Serial {
			out <- []dns.RR{soa}
			return
		}
		out <- append([]dns.RR{soa, e.ns(zone)}, e.addresses(request.Request{Zone: zone, Req: new(dns.Msg).SetQuestion(e.server(zone), dns.TypeA)}, e.server(zone))...)
		out <- e.records(zone)
		out <- []dns.RR{soa}
	}()
	return out, nil
}

// TransferSerials implements transfer.Changing.
func (e *External) TransferSerials() map[string]uint32 {
	if e.source == nil {
		return nil
	}
	all := map[string]uint32{}
	for _, zone := range e.Zones {
		if serial := e.source.ExternalSerial(zone); serial != 0 {
			all[zone] = serial
		}
	}
	return all
}

// records is all records of services, each once.
func (e *External) records(zone string) []dns.RR {
	if dnsutil.IsReverse("."+zone) != 0 {
		return e.pointers(zone)
	}
	services, headless := e.source.ExternalServices(zone, e.headless)
	set := records{met: map[string]bool{}}
	owners := map[string][]msg.Service{}
	for _, s := range e.own(services) {
		owner := msg.Domain(s.Key)
		owners[owner] = append(owners[owner], s)
	}
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		if set.addresses(owner, owners[owner]) {
			set.services(owner, owners[owner], func(s msg.Service) string { return targetOf(owner, s) })
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(headless)) {
		ends, owner := e.own(headless[owner]), dns.Fqdn(owner)
		reached := owners[owner] != nil // by external addresses, which stand at the service's name then
		if !reached {
			set.addresses(owner, ends)
		}
		for _, s := range ends {
			set.addresses(msg.Domain(s.Key), []msg.Service{s})
		}
		if !reached {
			set.services(owner, ends, func(s msg.Service) string { return msg.Domain(s.Key) })
		}
	}
	return set.all
}

// pointers is the PTR records of a reverse zone. As in answers, they lead into the first zone, and endpoints have none.
func (e *External) pointers(zone string) []dns.RR {
	services, _ := e.source.ExternalServices(e.Zones[0], false)
	set := records{met: map[string]bool{}}
	for _, s := range e.own(services) {
		if owner, err := dns.ReverseAddr(s.Host); err == nil && dns.IsSubDomain(zone, owner) {
			set.add(s.NewPTR(owner, msg.Domain(s.Key)))
		}
	}
	return set.all
}

// targetOf is where the SRV record of a service leads: to itself, or to the name that it has elsewhere.
func targetOf(owner string, s msg.Service) string {
	if net.ParseIP(s.Host) != nil {
		return owner
	}
	return dnsutil.Join(s.Host)
}

// records is a set of records.
type records struct {
	all []dns.RR
	met map[string]bool
}

func (r *records) add(rr dns.RR) {
	if text := rr.String(); !r.met[text] {
		r.met[text] = true
		r.all = append(r.all, rr)
	}
}

// addresses adds the addresses of services at owner, or an alias if there is none. It reports false for an alias: secondaries refuse
// a zone with other records beside one (RFC 2181 §10.1).
func (r *records) addresses(owner string, services []msg.Service) bool {
	for _, s := range addressesFirst(services) {
		typ, _ := s.HostType()
		switch ip := net.ParseIP(s.Host); typ {
		case dns.TypeA:
			r.add(s.NewA(owner, ip))
		case dns.TypeAAAA:
			r.add(s.NewAAAA(owner, ip))
		case dns.TypeCNAME:
			r.add(s.NewCNAME(owner, dns.Fqdn(s.Host)))
			return false
		}
	}
	return true
}

// services adds SRV records at owner.
func (r *records) services(owner string, services []msg.Service, target func(msg.Service) string) {
	for _, s := range services {
		if s.Port < 0 {
			continue
		}
		to := target(s)
		s.Host = to
		rr := s.NewSRV(owner, 100)
		rr.Target = to
		r.add(rr)
	}
}
