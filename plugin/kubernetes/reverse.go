package kubernetes

import (
	"net/netip"

	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// reverse answers for a name below in-addr.arpa or ip6.arpa: PTR records at whole addresses, and nothing else.
func (a *answer) reverse() result {
	p, ok := wire.ParseReverse(a.q.Lower())
	switch {
	case !ok:
		return nxDomain
	case !p.IsSingleIP():
		return a.span(p)
	}
	owners := a.owners(a.store, p.Addr().Unmap())
	var buf targetName
	if a.q.Type() != wire.TypePTR {
		if _, ok := owners.next(buf[:0]); ok {
			return noData
		}
		return nxDomain
	}
	for labels, ok := owners.next(buf[:0]); ok; labels, ok = owners.next(buf[:0]) {
		target := append(labels, a.primary.name...)
		if len(target) <= wire.MaxName && !a.hasPTR(target) {
			a.w.Target(wire.Answer, a.q.Name(), wire.TypePTR, a.ttl, target)
		}
		if a.w.Count(wire.Answer) == fewRecords {
			a.manyOwners(&owners)
			break
		}
	}
	if a.w.Count(wire.Answer) == 0 {
		return nxDomain
	}
	return hit
}

// manyOwners goes on where reverse stopped.
func (a *answer) manyOwners(owners *owners) {
	met := newIndex()
	defer met.release()
	var buf, room targetName
	for i := range a.w.Count(wire.Answer) {
		target, _ := a.targetAt(room[:0], i)
		met.add(hashOf(target), i)
	}
	for labels, ok := owners.next(buf[:0]); ok; labels, ok = owners.next(buf[:0]) {
		target := append(labels, a.primary.name...)
		hash := hashOf(target)
		if len(target) > wire.MaxName || met.has(hash, func(rec int) bool { return a.isPTR(rec, target) }) {
			continue
		}
		if a.w.Target(wire.Answer, a.q.Name(), wire.TypePTR, a.ttl, target) {
			met.add(hash, len(a.w.Recs())-1)
		}
	}
}

// hasPTR reports whether the answer has a PTR record to target already.
func (a *answer) hasPTR(target []byte) bool {
	for i := range a.w.Count(wire.Answer) {
		if a.isPTR(i, target) {
			return true
		}
	}
	return false
}

// isPTR reports whether record i is the PTR record to target.
func (a *answer) isPTR(i int, target []byte) bool {
	var room targetName
	name, ok := a.targetAt(room[:0], i)
	return ok && string(name) == string(target)
}

// targetAt appends the target of PTR record i to b.
func (a *answer) targetAt(b []byte, i int) ([]byte, bool) {
	return wire.AppendNameAt(b, a.w.Bytes(), int(a.w.Recs()[i].TTL)+6)
}

// owners walks over who has an address and a name for PTR records: the service whose cluster IP it is, or else all
// endpoints at it, or those with a hostname (ptr_hostname_only).
type owners struct {
	plan    *plan
	store   *store.Store
	addr    netip.Addr
	service *store.Service
	slices  store.SlicesByIP
	slice   *store.Slice
	i       int // the endpoint in slice to look at next
}

func (p *plan) owners(s *store.Store, addr netip.Addr) owners {
	o := owners{plan: p, store: s, addr: addr}
	if p.primary == nil { // names would be below no zone
		return o
	}
	if svc := s.ServiceByIP(addr); svc != nil && exposed(s, svc.Namespace()) {
		o.service = svc
		return o
	}
	o.slices = s.SlicesByIP(addr)
	return o
}

// next appends the labels of the next owner's name below the zone to b. It reports false after the last.
func (o *owners) next(b []byte) (labels []byte, ok bool) {
	if svc := o.service; svc != nil {
		o.service = nil
		return appendService(b, svc.Name(), svc.Namespace(), nil), true
	}
	for o.plan.primary != nil {
		if o.slice != nil {
			if i := o.slice.Find(o.addr, o.i); i >= 0 {
				o.i = i + 1
				end := o.slice.Endpoint(i)
				if o.plan.ptrHostnameOnly && end.Hostname == "" {
					continue
				}
				b = appendLabel(b, &end, o.plan.podNames)
				return appendService(b, o.slice.Service(), o.slice.Namespace(), nil), true
			}
		}
		if o.slice, o.i = o.slices.Next(), 0; o.slice == nil {
			break
		}
		if o.slice.Service() == "" || !exposed(o.store, o.slice.Namespace()) {
			o.i = o.slice.Len()
		}
	}
	return nil, false
}

func exposed(s *store.Store, namespace string) bool {
	var buf [wire.MaxLabel + 1]byte
	return s.Exposed(append(buf[:0], namespace...))
}
