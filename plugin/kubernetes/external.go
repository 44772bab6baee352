package kubernetes

import (
	"net/netip"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// The methods in this file are what plugin k8s_external publishes: services under the addresses at which they are
// reached from outside, in zones of its own. The zone is that of state, in lower case.

// noZone stands in for a zone of ours.
var noZone = new(zone)

// External returns the services at the name of state, and NOERROR or NXDOMAIN, or SERVFAIL if there are none and not
// all of the cluster is known yet. A name is one of
//
//	NAMESPACE                                 exists if it is exposed
//	SERVICE.NAMESPACE                         all ports
//	_PORT._PROTOCOL.SERVICE.NAMESPACE         one port
//	PORT.SERVICE.NAMESPACE                    the same, whatever its protocol, unless headless is set
//	ENDPOINT.SERVICE.NAMESPACE                of a headless service, if headless is set
//
// Each external address, or name of a load balancer, makes a service with each port; a headless service's
// endpoints do so with headless.
func (k *Kubernetes) External(state request.Request, headless bool) ([]msg.Service, int) {
	return k.externally(state, headless, nil)
}

// ExternalAnswer is External without services that would add nothing to an answer to the question of state: those that
// make no other record, and those for whose records no message has room.
func (k *Kubernetes) ExternalAnswer(state request.Request, headless bool) ([]msg.Service, int) {
	return k.externally(state, headless, &selection{qtype: state.QType()})
}

func (k *Kubernetes) externally(state request.Request, headless bool, only *selection) ([]msg.Service, int) {
	s, synced := k.data()
	all, rcode := k.externalOf(s, state, headless, only)
	if rcode == dns.RcodeNameError && !synced { // it may well exist
		return nil, dns.RcodeServerFailure
	}
	return all, rcode
}

func (k *Kubernetes) externalOf(s *store.Store, state request.Request, headless bool, only *selection) ([]msg.Service, int) {
	lower, err := wire.LowerName(state.Name())
	if err != nil {
		return nil, dns.RcodeNameError
	}
	zone, err := wire.LowerName(state.Zone)
	if err != nil || !wire.Below(lower, zone) {
		return nil, dns.RcodeNameError
	}
	n, ok := parseExternal(lower, len(lower)-len(zone), headless)
	if !ok || !s.Exposed(n.namespace) {
		return nil, dns.RcodeNameError
	}
	if n.service == nil {
		return nil, dns.RcodeSuccess
	}
	svc := s.Service(n.namespace, n.service)
	if svc == nil {
		return nil, dns.RcodeNameError
	}
	c := conversion{plan: k.compiled(), store: s, zone: noZone, name: &n}
	all := c.external(svc, state.Zone, headless, only)
	if len(all) == 0 {
		return nil, dns.RcodeNameError
	}
	return all, dns.RcodeSuccess
}

// parseExternal reads a name of an external zone, which begins at the offset zone.
func parseExternal(lower []byte, zone int, headless bool) (n name, ok bool) {
	l := labels{name: lower}
	l.split(zone)
	if l.n == 0 || l.n > 4 {
		return n, false
	}
	n.namespace = l.label(l.n - 1)
	if l.n > 1 {
		n.service = l.label(l.n - 2)
	}
	switch {
	case l.n == 3 && headless:
		n.endpoint = l.label(0)
	case l.n == 3:
		n.port = stripped(l.label(0))
	case l.n == 4:
		n.port, n.protocol = stripped(l.label(0)), stripped(l.label(1))
	}
	return n, true
}

// external returns the services that svc makes in an external zone, or some of them: of its external addresses, and if it
// is headless without any, or an endpoint of it is asked for, of its endpoints.
func (c *conversion) external(svc *store.Service, zone string, headless bool, only *selection) (all []msg.Service) {
	hosts := externalHosts(svc)
	if svc.Headless() && (len(hosts) == 0 || c.name.endpoint != nil) {
		if !headless {
			return nil
		}
		return c.externalEnds(svc, zone, only)
	}
	if c.name.endpoint != nil {
		return nil
	}
	owner, ports := dnsutil.Join(svc.Name(), svc.Namespace(), zone), c.numbers(svc.Ports())
	for _, host := range hosts {
		if all = c.withPorts(all, host, ports, owner, only); only.ends() {
			break
		}
	}
	return all
}

// externalEnds returns the services that the endpoints of a headless service make in an external zone, or some of them.
func (c *conversion) externalEnds(svc *store.Service, zone string, only *selection) (all []msg.Service) {
	e := c.endpoints(c.store, c.name, false)
	var slice *store.Slice
	var ports []int32
	for e.next() && !only.ends() {
		if e.slice != slice {
			slice, ports = e.slice, c.numbers(e.slice.Ports())
		}
		end := e.slice.Endpoint(e.i)
		owner := dnsutil.Join(endpointText(&end, c.podNames), svc.Name(), svc.Namespace(), zone)
		all = c.withPorts(all, end.Addr.String(), ports, owner, only)
	}
	return all
}

// withPorts appends the services of a host with all of its ports, or some of them, to all.
func (c *conversion) withPorts(all []msg.Service, host string, ports []int32, owner string, only *selection) []msg.Service {
	s, at := c.service(host, 0, owner), place{}
	again := false
	if only != nil {
		at = placeOf(owner, host)
		again = only.comesAgain(&at, ports)
	}
	for _, port := range ports {
		if s.Port = int(port); only.takes(&at, s.Port) {
			all = append(all, s)
		}
		if only.enough(again, port) {
			break
		}
	}
	return all
}

// externalHosts returns the addresses, then the names, at which a service is reached.
func externalHosts(svc *store.Service) (all []string) {
	for _, a := range svc.ExternalIPs() {
		all = append(all, a.String())
	}
	return append(all, svc.ExternalHosts()...)
}

// ExternalAddress returns A and AAAA records at the name of state for the server itself: the external addresses of
// the services that it is an endpoint of, with headless also its own address as an endpoint of headless ones, or
// if there are none its own addresses.
func (k *Kubernetes) ExternalAddress(state request.Request, headless bool) (records []dns.RR) {
	s, _ := k.data()
	p := k.compiled()
	met := map[netip.Addr]bool{}
	for _, server := range p.nameservers(s, k.shared.localAddrs(), fromOutside, headless) {
		for _, a := range server.addrs {
			if !met[a] {
				met[a] = true
				records = append(records, addressRecord(state.QName(), p.ttl, a))
			}
		}
	}
	return records
}

func addressRecord(owner string, ttl uint32, a netip.Addr) dns.RR {
	h := dns.RR_Header{Name: owner, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}
	if a.Is4() {
		return &dns.A{Hdr: h, A: a.AsSlice()}
	}
	h.Rrtype = dns.TypeAAAA
	return &dns.AAAA{Hdr: h, AAAA: a.AsSlice()}
}

// ExternalServices returns all services of exposed namespaces in an external zone, and with headless the endpoints of headless ones by
// the service's name below the zone: "service.namespace.zone". A headless one with external addresses is in both.
func (k *Kubernetes) ExternalServices(zone string, headless bool) (services []msg.Service, headlessServices map[string][]msg.Service) {
	s, _ := k.data()
	headlessServices = make(map[string][]msg.Service)
	for _, svc := range s.Services() {
		if !exposed(s, svc.Namespace()) {
			continue
		}
		n := name{namespace: []byte(svc.Namespace()), service: []byte(svc.Name())}
		c := conversion{plan: k.compiled(), store: s, zone: noZone, name: &n}
		if !svc.Headless() || len(externalHosts(svc)) > 0 {
			services = append(services, c.external(svc, zone, headless, nil)...)
		}
		if !svc.Headless() || !headless {
			continue
		}
		if ends := c.externalEnds(svc, zone, nil); len(ends) > 0 {
			headlessServices[dnsutil.Join(svc.Name(), svc.Namespace(), zone)] = ends
		}
	}
	return services, headlessServices
}

// PublishEndpoints says that external zones have endpoints of headless services, too: their serial rises with changes of
// these.
func (k *Kubernetes) PublishEndpoints() {
	if c, ok := k.APIConn.(*controller); ok {
		c.Store.PublishEndpoints()
	}
}

// ExternalSerial returns the serial of external zones.
func (k *Kubernetes) ExternalSerial(string) uint32 { return k.modified(ModifiedExternal) }

// ExternalReverse returns the services that have the external address: their hosts are "service.namespace", to
// which an external zone is to be added.
func (k *Kubernetes) ExternalReverse(ip string) (all []msg.Service, err error) {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return nil, errNoItems
	}
	s, _ := k.data()
	around := s.ServicesByExternalIP(addr)
	for svc := around.Next(); svc != nil; svc = around.Next() {
		if exposed(s, svc.Namespace()) {
			host := strings.Join([]string{svc.Name(), svc.Namespace()}, ".")
			all = append(all, msg.Service{Host: host, TTL: k.compiled().ttl})
		}
	}
	if len(all) == 0 {
		return nil, errNoItems
	}
	return all, nil
}

// ExternalSpan reports whether there is an external address of the prefix: then the partial reverse name that the
// prefix stands for exists. A second may go by until it tells of a change.
func (k *Kubernetes) ExternalSpan(p netip.Prefix) bool {
	if k.shared == nil {
		return false
	}
	s, _ := k.data()
	sorted, _ := k.shared.beyond.get(s, store.Outside, time.Now(), true)
	return within(sorted, p)
}
