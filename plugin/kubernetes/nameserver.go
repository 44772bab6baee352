package kubernetes

import (
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/hostaddrs"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// nameserver is a name under which the server itself is reached.
type nameserver struct {
	labels []byte // of the name below the zone, in wire form
	addrs  []netip.Addr
}

// reach says which services' addresses are looked for.
type reach uint8

const (
	fromInside  reach = iota // cluster IPs, and endpoints of headless services
	fromOutside              // external IPs
)

// nameservers returns the names of the services that the server is an endpoint of, by its own addresses. If it is
// none of any, as outside of the cluster, it is ns.dns with those addresses.
func (a *answer) nameservers() []nameserver {
	return a.plan.nameservers(a.store, a.shared.localAddrs(), fromInside, true)
}

func (p *plan) nameservers(s *store.Store, local []netip.Addr, from reach, headless bool) (all []nameserver) {
	for _, addr := range local {
		around := s.SlicesByIP(addr)
		for sl := around.Next(); sl != nil; sl = around.Next() {
			svc := s.Service([]byte(sl.Namespace()), []byte(sl.Service()))
			if svc == nil || !exposed(s, svc.Namespace()) {
				continue
			}
			var labels []byte
			addrs := svc.ClusterIPs()
			if from == fromOutside {
				addrs = svc.ExternalIPs()
			}
			if svc.Headless() && headless {
				end := sl.Endpoint(sl.Find(addr, 0))
				labels, addrs = appendLabel(nil, &end, p.podNames), []netip.Addr{addr}
			}
			all = addServer(all, appendService(labels, svc.Name(), svc.Namespace(), nil), addrs)
		}
	}
	if len(all) == 0 {
		all = addServer(all, []byte(soaServer), local)
	}
	return all
}

// addServer adds a name with addresses, or those that it does not have yet to one that is there.
func addServer(all []nameserver, labels []byte, addrs []netip.Addr) []nameserver {
	if len(addrs) == 0 {
		return all
	}
	i := slices.IndexFunc(all, func(s nameserver) bool { return string(s.labels) == string(labels) })
	if i < 0 {
		i = len(all)
		all = append(all, nameserver{labels: labels})
	}
	for _, a := range addrs {
		if !slices.Contains(all[i].addrs, a) {
			all[i].addrs = append(all[i].addrs, a)
		}
	}
	return all
}

// apexNS answers with the zone's name servers. Those of a zone that has no such names are called as in the first one that has.
func (a *answer) apexNS() {
	below := a.spelled()
	if a.zone.reverse || a.zone.multicluster {
		if a.primary == nil {
			return
		}
		below = a.primary.name
	}
	servers := a.nameservers()
	for i := range servers {
		if servers[i].labels = append(servers[i].labels, below...); len(servers[i].labels) <= wire.MaxName {
			a.w.Target(wire.Answer, a.q.Name(), wire.TypeNS, a.ttl, servers[i].labels)
		}
	}
	for _, s := range servers {
		for _, addr := range s.addrs {
			if len(s.labels) <= wire.MaxName {
				a.w.Addr(wire.Additional, s.labels, a.ttl, addr)
			}
		}
	}
}

// localAddrs returns the server's own addresses, those of "bind" if there are some. They
// are looked for once.
func (s *shared) localAddrs() []netip.Addr {
	if s == nil {
		return usable(nil, hostaddrs.Now)
	}
	if addrs := s.local.Load(); addrs != nil {
		return *addrs
	}
	var bound []string
	if s.config != nil {
		bound = s.config.ListenHosts
	}
	addrs := usable(bound, hostaddrs.Now)
	s.local.Store(&addrs)
	return addrs
}

// usable returns the addresses of hosts at which others reach the server, be they plain or with a prefix length, or if there
// are none all such addresses of the machine.
func usable(hosts []string, machine func() []netip.Addr) (addrs []netip.Addr) {
	add := func(a netip.Addr) {
		if a = a.Unmap().WithZone(""); a.IsGlobalUnicast() && !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	for _, h := range hosts {
		if p, err := netip.ParsePrefix(h); err == nil {
			add(p.Addr())
		} else if a, err := netip.ParseAddr(h); err == nil {
			add(a)
		}
	}
	if len(addrs) > 0 {
		return addrs
	}
	for _, a := range machine() {
		add(a)
	}
	return addrs
}
