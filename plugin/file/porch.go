package file

import (
	"sync"

	"github.com/coredns/coredns/plugin/file/tree"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// The methods below stand before those of the embedded Tree for Zones whose data is in the store: what is walked is made of
// it on the way, and what is changed gives a new version, which takes as long as building the zone.

// edits has one change of a version at a time. It is held while those are told who asked for it with OnReplace.
var edits sync.Mutex

// edit replaces the version in the store by one with a change.
func (z *Zone) edit(change func(*zone.Edit) error) error {
	edits.Lock()
	defer edits.Unlock()
	e := z.store.Load().Edit(func(string, ...any) {})
	if err := change(e); err != nil {
		return err
	}
	v, err := e.Build()
	if err != nil {
		return err
	}
	z.store.Replace(v)
	return nil
}

// Delete takes away all records of rr's type at rr's owner.
func (z *Zone) Delete(rr dns.RR) {
	v := z.store.Load()
	if v == nil {
		z.Tree.Delete(rr)
		return
	}
	n, ok := lookup(v, rr.Header().Name)
	if !ok {
		return
	}
	owner := n.Name(v)
	err := z.edit(func(e *zone.Edit) error {
		for rec := range v.RecordsOf(owner, n.Set(rr.Header().Rrtype)) {
			if err := e.Remove(owner, rec.Type, rec.RData); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		flog.Warningf("Zone %s: %v", z.origin, err)
	}
}

// Search is the records of a name, and whether there are some. The SOA and NS records of the apex are not among them.
func (z *Zone) Search(qname string) (*tree.Elem, bool) {
	v := z.store.Load()
	if v == nil {
		return z.Tree.Search(qname)
	}
	n, ok := lookup(v, qname)
	if !ok {
		return nil, false
	}
	e := elem(v, n.Name(v), n)
	return e, e != nil
}

// ClosestEncloser is the records of the longest name with some that qname is or lies below.
func (z *Zone) ClosestEncloser(qname string) (*tree.Elem, bool) {
	for dns.IsSubDomain(z.origin, qname) {
		if e, ok := z.Search(qname); ok {
			return e, true
		}
		off, end := dns.NextLabel(qname, 0)
		if end {
			break
		}
		qname = qname[off:]
	}
	return z.Search(z.origin)
}

// All is the records of all names in canonical order.
func (z *Zone) All() []*tree.Elem {
	v := z.store.Load()
	if v == nil {
		return z.Tree.All()
	}
	var all []*tree.Elem
	for name, n := range v.Nodes() {
		if e := elem(v, name, n); e != nil {
			all = append(all, e)
		}
	}
	return all
}

// Len is the number of names with records.
func (z *Zone) Len() int {
	if z.store.Load() == nil {
		return z.Tree.Len()
	}
	return len(z.All())
}

// Walk calls fn for each name in canonical order; see tree.Tree.Walk.
func (z *Zone) Walk(fn func(*tree.Elem, map[uint16][]dns.RR) error) error {
	return z.AuthWalk(func(e *tree.Elem, sets map[uint16][]dns.RR, _ bool) error { return fn(e, sets) })
}

// AuthWalk is Walk that also tells whether the zone is authoritative for the name; see tree.Tree.AuthWalk.
func (z *Zone) AuthWalk(fn func(*tree.Elem, map[uint16][]dns.RR, bool) error) error {
	v := z.store.Load()
	if v == nil {
		return z.Tree.AuthWalk(fn)
	}
	for name, n := range v.Nodes() {
		e := elem(v, name, n)
		if e == nil {
			continue
		}
		sets := map[uint16][]dns.RR{}
		for _, rr := range e.All() {
			sets[rr.Header().Rrtype] = append(sets[rr.Header().Rrtype], rr)
		}
		if err := fn(e, sets, !n.Occluded()); err != nil {
			return err
		}
	}
	return nil
}

// Glue is the addresses of name servers that are in the domain which their NS records delegate; see tree.Tree.Glue.
func (z *Zone) Glue(nsrrs []dns.RR, do bool) []dns.RR {
	if z.store.Load() == nil {
		return z.Tree.Glue(nsrrs, do)
	}
	addresses := new(tree.Tree)
	for _, rr := range nsrrs {
		if ns, ok := rr.(*dns.NS); ok {
			if e, ok := z.Search(ns.Ns); ok {
				for _, rr := range e.All() {
					addresses.Insert(rr)
				}
			}
		}
	}
	return addresses.Glue(nsrrs, do)
}

// lookup is the node of a name in presentation form.
func lookup(v *zone.Zone, name string) (zone.Node, bool) {
	n, err := wire.LowerName(name)
	if err != nil || !wire.Below(n, v.Origin()) {
		return nil, false
	}
	return v.Lookup(n, wire.Hash(n))
}

// elem is the records of a node as a Tree has them, nil if there are none.
func elem(v *zone.Zone, name []byte, n zone.Node) *tree.Elem {
	apex := len(name) == len(v.Origin())
	var rrs []dns.RR
	for set := range n.Sets() {
		if apex && (set.Type() == dns.TypeSOA || set.Type() == dns.TypeNS) {
			continue
		}
		rrs = appendRRs(rrs, v, name, set)
		rrs = appendRRs(rrs, v, name, set.Signatures())
	}
	if len(rrs) == 0 {
		return nil
	}
	return tree.NewElem(rrs...)
}
