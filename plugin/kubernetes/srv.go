package kubernetes

import (
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// SRV records (RFC 2782) stand for entries: a port of a service together with one of its addresses. All have the
// priority 0 and one weight, so that they add up to about 100. Ports without a number count, but have no record.

// weight is that of each of n entries.
func weight(n int) uint16 { return uint16(max(1, 100/n)) }

// targetName is room for a label or two and the name of a service.
type targetName [2*wire.MaxName + 1]byte

// appendService appends the name of a service below a zone to b, behind what stands there. It returns
// nil if the whole is longer than a name may be.
func appendService[T string | []byte](b []byte, service, namespace T, zone []byte) []byte {
	b = append(append(b, byte(len(service))), service...)
	b = append(append(b, byte(len(namespace))), namespace...)
	b = append(append(b, byte(len(Svc))), Svc...)
	if b = append(b, zone...); len(b) > wire.MaxName {
		return nil
	}
	return b
}

// spelled is the zone's name as the query spells it.
func (a *answer) spelled() []byte { return a.q.Name()[a.at:] }

// clusterSRV answers for a service with addresses of its own: one record for each port, whose target is the service.
func (a *answer) clusterSRV(n *name, svc *store.Service) {
	ports, addrs := svc.Ports(), svc.ClusterIPs()
	w := weight(countPorts(ports, n, !a.zone.multicluster) * len(addrs))
	var buf targetName
	target := appendService(buf[:0], n.service, n.namespace, a.spelled())
	met := newNumbers(ports)
	for i := range ports {
		p := &ports[i]
		if p.Number < 0 || !n.wants(p) || met.has(n, i) {
			continue
		}
		if !a.w.SRV(wire.Answer, a.q.Name(), a.ttl, 0, w, uint16(p.Number), target) {
			break // there is no room for more
		}
	}
	if a.w.Count(wire.Answer) == 0 {
		return
	}
	for i, addr := range addrs {
		if !slices.Contains(addrs[:i], addr) {
			a.w.Addr(wire.Additional, target, a.ttl, addr)
		}
	}
}

// numbers is which numbers ports have that a name asks for.
type numbers struct {
	ports []store.Port
	met   []uint64 // a bit for each number, where there are many ports; nil else
}

// fewPorts is how many are compared with each other.
const fewPorts = 32

func newNumbers(ports []store.Port) numbers {
	s := numbers{ports: ports}
	if len(ports) > fewPorts {
		s.met = make([]uint64, (1<<16)/64)
	}
	return s
}

// has reports whether a port before port i has its number. It is called for each that n asks for, in their order.
func (s *numbers) has(n *name, i int) bool {
	number := s.ports[i].Number
	if s.met == nil {
		return slices.ContainsFunc(s.ports[:i], func(p store.Port) bool { return p.Number == number && n.wants(&p) })
	}
	at, bit := uint16(number)/64, uint64(1)<<(uint16(number)%64)
	was := s.met[at]&bit != 0
	s.met[at] |= bit
	return was
}

// endSRV answers for endpoints: one record for each port of each, whose target is the endpoint, and the addresses of
// the targets. It reports whether there are endpoints.
func (a *answer) endSRV(n *name, e endpoints) (exist bool) {
	entries := 0
	for all := e; all.next(); {
		entries += all.ports
	}
	if entries == 0 {
		return false
	}
	a.endTargets(n, e, weight(entries))
	a.targetAddresses(n, e)
	return true
}

// endTargets adds SRV records, each target and port once.
func (a *answer) endTargets(n *name, e endpoints, weight uint16) {
	met := newIndex()
	defer met.release()
	var buf targetName
	for e.next() {
		target := a.targetOf(buf[:0], n, &e)
		if target == nil {
			continue
		}
		hash := hashOf(target)
		ports := e.slice.Ports()
		for i := range ports {
			p := &ports[i]
			if p.Number < 0 || !n.wants(p) {
				continue
			}
			both := hash + uint64(p.Number)*hashStep
			if met.has(both, func(rec int) bool { return a.leadsTo(rec, target, p.Number) }) {
				continue
			}
			if !a.w.SRV(wire.Answer, a.q.Name(), a.ttl, 0, weight, uint16(p.Number), target) {
				return
			}
			met.add(both, len(a.w.Recs())-1)
		}
	}
}

// leadsTo reports whether record rec is an SRV record with the target and port.
func (a *answer) leadsTo(rec int, target []byte, port int32) bool {
	b := a.w.RData(rec)
	return int32(b[4])<<8|int32(b[5]) == port && string(b[6:]) == string(target)
}

// targetAddresses adds the addresses of the targets that endTargets found.
func (a *answer) targetAddresses(n *name, e endpoints) {
	met := newIndex()
	defer met.release()
	var buf targetName
	for e.next() {
		if !slices.ContainsFunc(e.slice.Ports(), func(p store.Port) bool { return p.Number >= 0 && n.wants(&p) }) {
			continue
		}
		target, addr := a.targetOf(buf[:0], n, &e), e.slice.Addr(e.i)
		if target == nil {
			continue
		}
		hash := hashBoth(target, addr)
		if met.has(hash, func(rec int) bool { return a.standsAt(rec, target, addr) }) {
			continue
		}
		if !a.w.Addr(wire.Additional, target, a.ttl, addr) {
			return
		}
		met.add(hash, len(a.w.Recs())-1)
	}
}

// standsAt reports whether record rec is that of an address of a target.
func (a *answer) standsAt(rec int, target []byte, addr netip.Addr) bool {
	var data [16]byte
	if string(a.w.RData(rec)) != string(octets(&data, addr)) {
		return false
	}
	var name [wire.MaxName + 1]byte
	owner, ok := wire.AppendNameAt(name[:0], a.w.Bytes(), int(a.w.Recs()[rec].Off))
	return ok && string(owner) == string(target)
}

// targetOf appends the name of the endpoint at hand to b; nil if it is too long for a name, or if the endpoint has none,
// which is so for one that was imported without the name of its cluster (RFC 2782: a target has an address).
func (a *answer) targetOf(b []byte, n *name, e *endpoints) []byte {
	end := e.slice.Endpoint(e.i)
	b = appendLabel(b, &end, e.podNames)
	if a.zone.multicluster {
		_, cluster := e.slice.Import()
		if cluster == "" {
			return nil
		}
		b = append(append(b, byte(len(cluster))), cluster...)
	}
	return appendService(b, n.service, n.namespace, a.spelled())
}
