package dynupdate

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// This file makes the PTR records of a zone with reverse_of. Those that point into the zone named there are the ones
// that its A and AAAA records make (RFC 1035 §3.5, RFC 3596 §2.5), and no others: so what a crash has left of a
// change that touched both is made right at start. When that is done is in follow.go.

// follower is a zone that has PTR records for the addresses of another.
type follower struct {
	store    *store
	settings *settings // of its directive
}

// pointer is a PTR record that comes or goes.
type pointer struct {
	at  []byte // the name of an address
	to  []byte
	ttl uint32
	add bool
}

// owns reports whether the PTR records that point to a lower name are made of a zone's addresses. Of several zones the one
// with the longest name has them.
func (s *settings) owns(origin, target []byte) bool { return string(s.owner(target)) == string(origin) }

// owner is the zone whose addresses make the PTR records that point to a lower name, nil if there is none.
func (s *settings) owner(target []byte) (longest []byte) {
	for _, origin := range s.reverseOf {
		if len(origin) > len(longest) && wire.Below(target, origin) {
			longest = origin
		}
	}
	return longest
}

// lowered is a name in lower case.
func lowered(name []byte) []byte {
	name = slices.Clone(name)
	wire.Lower(name, name)
	return name
}

// pointer is the PTR record that a record of a zone makes, if it makes one of the follower's.
func (f *follower) pointer(origin []byte, r zone.Record) (p pointer, ok bool) {
	if r.Type != dns.TypeA && r.Type != dns.TypeAAAA || strings.HasPrefix(string(r.Owner), "\x01*") {
		return p, false
	}
	a, ok := netip.AddrFromSlice(r.RData)
	if !ok || a.Is4() != (r.Type == dns.TypeA) {
		return p, false
	}
	p.at = wire.ReverseName(a)
	if !wire.Below(p.at, f.settings.origin) || !f.settings.owns(origin, r.Owner) {
		return p, false
	}
	p.to, p.ttl, p.add = slices.Clone(r.Owner), r.TTL, true
	return p, true
}

// pointers is the PTR records that a change of a zone has come and go.
func (f *follower) pointers(origin []byte, d *zone.Delta) (all []pointer) {
	w := d.Walk()
	for n := range d.Removed + d.Added {
		r, _ := w.Next()
		if p, ok := f.pointer(origin, r); ok {
			p.add = n >= d.Removed
			all = append(all, p)
		}
	}
	return all
}

// refusal is the error of an update that a follower's limits refuse.
type refusal struct{ result }

func (r *refusal) Error() string { return r.note }

// make makes the follower's version with what comes and goes, nil if that is the one that is there. Its lock is held.
func (f *follower) make(changes []pointer) (*prepared, error) {
	var no *refusal
	do := func(c *zone.Change) bool {
		for _, p := range changes {
			if no = f.apply(c, p); no != nil {
				return false
			}
		}
		return c.Changes() && raise(c, f.settings.origin, f.settings.serial, uint32(f.store.now().Unix())) == nil
	}
	p, err := f.store.prepare(do, func(next *zone.Zone, d *zone.Delta) bool {
		if r := f.settings.within(next, d); r.rcode != dns.RcodeSuccess {
			no = &refusal{r}
		}
		return no == nil
	})
	if no != nil {
		no.result = refused("zone %s: %s", f.store.zone, no.note)
		return nil, no
	}
	if err == errFrozen {
		return nil, &refusal{refused("zone %s is frozen", f.store.zone)}
	}
	return p, err
}

// apply makes one change. Beside a CNAME record, such as those that lead to a part of a network (RFC 2317), there is no PTR
// record.
func (f *follower) apply(c *zone.Change, p pointer) *refusal {
	s := c.At(p.at)
	switch {
	case !p.add:
		s.Remove(dns.TypePTR, p.to)
		return nil
	case s.Len(dns.TypeCNAME) > 0:
		return nil
	}
	if err := s.Add(dns.TypePTR, min(max(p.ttl, f.settings.ttlMin), f.settings.ttlMax), p.to); err != nil {
		return &refusal{refused("%v", err)}
	}
	if n := s.Len(dns.TypePTR); n > maxSet {
		return &refusal{refused("%s PTR would have %d records, at most %d are allowed", wire.Text(p.at), n, maxSet)}
	}
	return nil
}

// differences is what is to come and go for the follower to agree with a version of the zone. Its lock is held.
func (f *follower) differences(v *zone.Zone) (changes []pointer) {
	wanted := map[string]pointer{} // by both names
	key := func(at, to []byte) string { return string(at) + "|" + string(to) }
	var order []string
	for name, n := range v.Nodes() {
		for _, typ := range [...]uint16{dns.TypeA, dns.TypeAAAA} {
			for r := range v.RecordsOf(name, n.Set(typ)) {
				if p, ok := f.pointer(v.Origin(), r); ok {
					k := key(p.at, p.to)
					wanted[k], order = p, append(order, k)
				}
			}
		}
	}
	there := f.store.tip
	for name, n := range there.Nodes() {
		for r := range there.RecordsOf(name, n.Set(dns.TypePTR)) {
			to := lowered(r.RData)
			if k := key(name, to); f.settings.owns(v.Origin(), to) {
				if _, ok := wanted[k]; ok {
					delete(wanted, k)
				} else {
					changes = append(changes, pointer{at: slices.Clone(name), to: to})
				}
			}
		}
	}
	for _, k := range order {
		if p, ok := wanted[k]; ok {
			changes = append(changes, p)
		}
	}
	return changes
}
