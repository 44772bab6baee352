package kubernetes

import (
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// isType reports whether an address makes a record of the type.
func isType(addr netip.Addr, typ uint16) bool {
	return addr.Is4() && typ == wire.TypeA || addr.Is6() && typ == wire.TypeAAAA
}

// addresses adds those of addrs that are of the query's type, each once.
func (a *answer) addresses(owner []byte, addrs []netip.Addr) {
	for _, addr := range addrs {
		if isType(addr, a.q.Type()) && !a.has(addr) {
			a.w.Addr(wire.Answer, owner, a.ttl, addr)
		}
	}
}

// has reports whether the answer has an address already.
func (a *answer) has(addr netip.Addr) bool {
	var buf [16]byte
	data := octets(&buf, addr)
	for i := range a.w.Count(wire.Answer) {
		if a.w.Recs()[i].Type == a.q.Type() && string(a.w.RData(i)) == string(data) {
			return true
		}
	}
	return false
}

// octets returns an address as the RDATA of its record, which it puts into buf.
func octets(buf *[16]byte, addr netip.Addr) []byte {
	if *buf = addr.As16(); addr.Is4() {
		return buf[12:]
	}
	return buf[:]
}

// ends answers for endpoints of a service.
func (a *answer) ends(owner []byte, n *name) result {
	e := a.endpoints(a.store, n, a.zone.multicluster)
	exists := false
	switch a.q.Type() {
	case wire.TypeA, wire.TypeAAAA:
		exists = a.endAddresses(owner, &e)
	case wire.TypeSRV:
		exists = a.endSRV(n, e)
	default:
		exists = e.next()
	}
	if !exists && n.direction != pin { // endpoints that are pinned to where there are none
		return nxDomain
	}
	return a.any()
}

// endAddresses adds the addresses of endpoints, each once. It reports whether there are endpoints, of whatever family.
func (a *answer) endAddresses(owner []byte, e *endpoints) (exist bool) {
	for e.next() {
		exist = true
		addr := e.slice.Addr(e.i)
		if !isType(addr, a.q.Type()) || a.has(addr) {
			continue
		}
		if !a.w.Addr(wire.Answer, owner, a.ttl, addr) {
			break // more than a message holds
		}
		if a.w.Count(wire.Answer) == fewRecords {
			a.manyAddresses(owner, e)
			break
		}
	}
	return exist
}

// manyAddresses goes on where endAddresses stopped.
func (a *answer) manyAddresses(owner []byte, e *endpoints) {
	met := newIndex()
	defer met.release()
	for i := range a.w.Count(wire.Answer) {
		met.add(hashOf(a.w.RData(i)), i)
	}
	var buf [16]byte
	for e.next() {
		addr := e.slice.Addr(e.i)
		if !isType(addr, a.q.Type()) {
			continue
		}
		data := octets(&buf, addr)
		hash := hashOf(data)
		if met.has(hash, func(rec int) bool { return string(a.w.RData(rec)) == string(data) }) {
			continue
		}
		if !a.w.Addr(wire.Answer, owner, a.ttl, addr) {
			return
		}
		met.add(hash, len(a.w.Recs())-1)
	}
}
