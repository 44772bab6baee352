package file

import (
	"fmt"
	"slices"
	"sync"

	"github.com/coredns/coredns/plugin/file/tree"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// A Zone that was put together record by record is made into an immutable zone when it is first asked, and again
// when it is asked after a change. So changes cost nothing, and a query after one costs what building the zone does: some
// milliseconds for ten thousand records. Nobody else pays for that.

// compiler keeps what was made of a Zone's Tree and Apex last.
type compiler struct {
	building sync.Mutex // one at a time builds

	mu      sync.RWMutex // of Apex and Tree, as Insert changes them, and of what follows
	made    recipe
	version *zone.Zone
}

// recipe is what a version is made of; two that are equal give the same version.
type recipe struct {
	tree    *tree.Tree
	changes uint64
	soa     dns.SOA
	hasSOA  bool
	ns      [3][]dns.RR // NS, SIGNS, SIGSOA
}

func (r *recipe) equal(o *recipe) bool {
	return r.tree == o.tree && r.changes == o.changes && r.hasSOA == o.hasSOA && r.soa == o.soa &&
		slices.Equal(r.ns[0], o.ns[0]) && slices.Equal(r.ns[1], o.ns[1]) && slices.Equal(r.ns[2], o.ns[2])
}

// compiled is the version that Tree and Apex make, nil if there is no SOA record; and Expired.
func (z *Zone) compiled() (v *zone.Zone, expired bool) {
	if v, expired, ok := z.made(); ok {
		return v, expired
	}
	z.compile.building.Lock()
	defer z.compile.building.Unlock()
	v, expired, ok := z.made()
	if ok {
		return v, expired
	}
	r := z.kept()
	v = z.build(&r)
	z.compile.mu.Lock()
	defer z.compile.mu.Unlock()
	z.compile.made, z.compile.version = r, v
	return v, expired
}

// made is the version that was made last, if nothing was changed since.
func (z *Zone) made() (v *zone.Zone, expired, ok bool) {
	z.RLock()
	defer z.RUnlock()
	z.compile.mu.RLock()
	defer z.compile.mu.RUnlock()
	r := z.recipe()
	return z.compile.version, z.Expired, z.compile.made.equal(&r)
}

// kept is the recipe in memory of its own: others may change the slices that it is made of.
func (z *Zone) kept() recipe {
	z.RLock()
	defer z.RUnlock()
	z.compile.mu.RLock()
	defer z.compile.mu.RUnlock()
	r := z.recipe()
	for i := range r.ns {
		r.ns[i] = slices.Clone(r.ns[i])
	}
	return r
}

// recipe is what Tree and Apex are now. The Zone is locked.
func (z *Zone) recipe() (r recipe) {
	r.tree = z.Tree
	if r.tree != nil {
		r.changes = r.tree.Changes() // before the records are read, so a change meanwhile is seen the next time
	}
	if z.SOA != nil {
		r.soa, r.hasSOA = *z.SOA, true
	}
	r.ns = [3][]dns.RR{z.NS, z.SIGNS, z.SIGSOA}
	return r
}

// build makes a version. Records that cannot be in it are left out.
func (z *Zone) build(r *recipe) *zone.Zone {
	if !r.hasSOA || z.name == nil {
		return nil
	}
	b := zone.NewBuilder(z.name, func(string, ...any) {})
	soa := r.soa
	soa.Hdr.Name, soa.Hdr.Rrtype, soa.Hdr.Class = z.origin, dns.TypeSOA, dns.ClassINET
	add := func(rr dns.RR) {
		if err := b.AddRR(rr); err != nil {
			flog.Warningf("Zone %s: %v", z.origin, err)
		}
	}
	add(&soa)
	for _, rrs := range r.ns {
		for _, rr := range rrs {
			add(rr)
		}
	}
	if r.tree != nil {
		for _, e := range r.tree.All() {
			for _, rr := range e.All() {
				add(rr)
			}
		}
	}
	v, err := b.Build()
	if err != nil {
		flog.Warningf("Zone %s: %v", z.origin, err)
		return nil
	}
	return v
}

// Insert adds a record to the zone, which keeps it. Owner and the names in NS, CNAME, MX, SOA, SVCB and HTTPS records become
// lower case. A SOA record takes the place of the one that is there. NSEC3 records are an error.
func (z *Zone) Insert(r dns.RR) error {
	switch r.Header().Rrtype {
	case dns.TypeNSEC3, dns.TypeNSEC3PARAM:
		return fmt.Errorf("%w, dropping RR: %s for zone: %s", zone.ErrNSEC3, r.Header().Name, z.origin)
	}
	r, err := lowered(r)
	if err != nil {
		return err
	}
	if z.store.Load() != nil {
		return z.edit(func(e *zone.Edit) error { return e.AddRR(r) })
	}
	if z.insertApex(r) {
		return nil
	}
	z.compile.mu.Lock()
	if z.Tree == nil {
		z.Tree = new(tree.Tree)
	}
	t := z.Tree
	z.compile.mu.Unlock()
	t.Insert(r)
	return nil
}

// insertApex adds a record that belongs to Apex.
func (z *Zone) insertApex(r dns.RR) bool {
	z.compile.mu.Lock()
	defer z.compile.mu.Unlock()
	atApex := r.Header().Name == z.origin
	switch rr := r.(type) {
	case *dns.SOA:
		z.SOA = rr
		return true
	case *dns.NS:
		if atApex {
			z.NS = append(z.NS, rr)
			return true
		}
	case *dns.RRSIG:
		switch {
		case rr.TypeCovered == dns.TypeSOA:
			z.SIGSOA = append(z.SIGSOA, rr)
			return true
		case rr.TypeCovered == dns.TypeNS && atApex:
			z.SIGNS = append(z.SIGNS, rr)
			return true
		}
	}
	return false
}

// lowered is a record with its owner, and the names in its data that resolvers compare, in lower case and with
// the usual escapes; owners of SRV records stay as they are. What is changed is a copy.
func lowered(rr dns.RR) (dns.RR, error) {
	owner, err := lowerName(rr.Header().Name)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", rr.Header().Name, err)
	}
	changed := owner != rr.Header().Name && rr.Header().Rrtype != dns.TypeSRV
	for _, n := range targets(rr) {
		l, err := lowerName(*n)
		if err != nil {
			return nil, fmt.Errorf("record %s: name %s: %w", rr.Header().Name, *n, err)
		}
		changed = changed || l != *n
	}
	if !changed {
		return rr, nil
	}
	rr = dns.Copy(rr)
	if rr.Header().Rrtype != dns.TypeSRV {
		rr.Header().Name = owner
	}
	for _, n := range targets(rr) {
		*n, _ = lowerName(*n)
	}
	return rr, nil
}

func lowerName(name string) (string, error) {
	n, err := wire.LowerName(name)
	return wire.Text(n), err
}

// targets is the names in a record's data that are kept in lower case.
func targets(rr dns.RR) []*string {
	switch rr := rr.(type) {
	case *dns.NS:
		return []*string{&rr.Ns}
	case *dns.SOA:
		return []*string{&rr.Ns, &rr.Mbox}
	case *dns.CNAME:
		return []*string{&rr.Target}
	case *dns.MX:
		return []*string{&rr.Mx}
	case *dns.SVCB:
		return []*string{&rr.Target}
	case *dns.HTTPS:
		return []*string{&rr.Target}
	}
	return nil
}
