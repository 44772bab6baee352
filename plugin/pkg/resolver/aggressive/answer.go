package aggressive

import (
	"sort"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// The conditions are those of a validator (RFC 4035 §5.4, RFC 5155 §8): what this file denies, a validator above
// proves by the same records, and finds secure. Where one of them is not kept, nothing is denied, and
// servers are asked.

// proof is what an answer is made of.
type proof struct {
	kind store.Kind
	all  [3]*record // that deny; the first n
	n    int
	wild record // Positive
	ok   bool
}

// by adds a record that proves, once.
func (p *proof) by(r *record) {
	for _, o := range p.all[:p.n] {
		if o.set == r.set {
			return
		}
	}
	p.all[p.n] = r
	p.n++
}

// denied is a proof that a name, or a type of it, does not exist.
func denied(kind store.Kind, by ...*record) (p proof) {
	p.kind, p.ok = kind, true
	for _, r := range by {
		p.by(r)
	}
	return p
}

// Only the deepest zone that is known at or above a name is asked. One above it knows nothing of the names in it (RFC
// 6840 §4.1), and its records are checked for that once more by span.covers.

// Answer is what follows from what is kept for a name and type: that it does not exist, or what a wildcard stands for;
// nil if nothing does. Its TTL is the least of what is left of its records, and of SOA MINIMUM where it denies (RFC
// 8198 §5.4).
func (s *Store) Answer(name string, typ uint16, now store.Time) *store.Inferred {
	if typ == rrset.TypeDS || typ == rrset.TypeANY || typ == wire.TypeRRSIG || typ == rrset.TypeNSEC || typ == rrset.TypeNSEC3 {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.zones) == 0 {
		return nil
	}
	for apex := name; ; apex = rrset.Parent(apex) {
		if z := s.zones[apex]; z != nil && len(z.spans)+len(z.spans3) > 0 {
			p := z.bySpans(name, typ, now)
			if !p.ok && len(z.spans3) > 0 {
				p = z.bySpans3(apex, name, typ, now)
			}
			denies := z.soa.set != nil && z.soa.until > now
			if p.ok && (denies || p.kind == store.Positive) {
				return z.entry(apex, name, &p, now)
			}
			if denies {
				return nil // only a zone's own denials count, and those above do not know it
			}
		}
		if apex == rrset.Root {
			return nil
		}
	}
}

// SOA is the SOA record of a zone, with what is left of its TTL as one that denies (RFC 2308 §5); nil if it is not
// known.
func (s *Store) SOA(apex string, now store.Time) *rrset.Set {
	s.mu.RLock()
	defer s.mu.RUnlock()
	z := s.zones[apex]
	if z == nil || z.soa.set == nil || z.soa.until <= now {
		return nil
	}
	return z.soa.set.WithTTL(min(z.soa.until.Left(now), rrset.SOAMinimum(z.soa.set.First())))
}

// entry is a proof as a resolver keeps denials, and answers by wildcards.
func (z *zone) entry(apex, name string, p *proof, now store.Time) *store.Inferred {
	e := &store.Inferred{Entry: store.Entry{Kind: p.kind, Rank: store.SecureData, Status: store.Secure, Zone: apex}}
	until := p.wild.until
	e.By = p.wild.by
	if p.kind != store.Positive {
		e.SOA, e.By = z.soa.set, z.soa.by
		until = min(z.soa.until, now.After(rrset.SOAMinimum(z.soa.set.First())))
	}
	e.Denials = make([]*rrset.Set, p.n)
	for i, r := range p.all[:p.n] {
		until = min(until, r.until)
		e.Denials[i] = r.set
		if r.by != e.By {
			e.By = nil
		}
	}
	if e.Expires, e.TTL = until, until.Left(now); e.TTL == 0 {
		return nil
	}
	if p.kind == store.Positive {
		e.Set = p.wild.set.Under(name, e.TTL)
	}
	return e
}

// at is the record that a name matches or that covers it, nil if none that lives does.
func (z *zone) at(name string, now store.Time) *span {
	var room [orderRoom]byte
	o := appendOrder(room[:0], name)
	i := sort.Search(len(z.spans), func(i int) bool { return z.spans[i].order > string(o) }) - 1
	if i < 0 {
		return nil
	}
	p := &z.spans[i]
	if p.until <= now || p.order != string(o) && !p.covers(name, o) {
		return nil
	}
	return p
}

// A name that is covered does not exist, but a wildcard might answer for it: that is denied, too, or lacks the type
// (RFC 8198 §5.1), or else answers if it is kept (§5.3). What is known of the wildcard's types is heeded.

// bySpans answers by NSEC (RFC 4035 §5.4).
func (z *zone) bySpans(name string, typ uint16, now store.Time) (none proof) {
	p := z.at(name, now)
	switch {
	case p == nil:
		return none
	case p.Owner() == name && p.Lacks(typ), p.Owner() != name && rrset.Below(p.Next(), name): // an empty non-terminal
		return denied(store.NoData, &p.record)
	case p.Owner() == name:
		return none
	}
	up := p.Encloser(name)
	star := validate.WildcardOf(up)
	w := z.at(star, now)
	switch {
	case w == nil:
		return z.expand(up, typ, &p.record, nil, now)
	case w.Owner() == star && w.Lacks(typ):
		return denied(store.NoData, &p.record, &w.record)
	case w.Owner() == star && !w.Leads():
		return z.expand(up, typ, &p.record, w.Has, now)
	case w.Owner() == star || rrset.Below(w.Next(), star):
		return none
	}
	return denied(store.NXDomain, &p.record, &w.record)
}

// at3 is the record that a hash matches or that covers it.
func (z *zone) at3(hash string, now store.Time) (p *span3, matches bool) {
	i := sort.Search(len(z.spans3), func(i int) bool { return z.spans3[i].Owner() > hash }) - 1
	if i < 0 {
		i = len(z.spans3) - 1 // the last one covers what is before the first
	}
	if p = &z.spans3[i]; p.until <= now {
		return nil, false
	}
	if p.Owner() == hash {
		return p, true
	}
	if !p.Covers(hash) {
		return nil, false
	}
	return p, false
}

// Each hash costs as much as the zone wants, within bounds, so a name of many labels is given up after some (RFC 8198
// §5.2, CVE-2023-50868).
//
// That the closest encloser exists needs no record where a wildcard answers: the wildcard exists, and so do all above
// it (RFC 5155 §8.8). Replies made from one do not have such a record, either (§7.2.6).

// bySpans3 answers by NSEC3 (RFC 5155 §8.4 to §8.8).
func (z *zone) bySpans3(apex, name string, typ uint16, now store.Time) (none proof) {
	hash := z.spans3[0].Hash
	next, is := z.at3(hash(name), now)
	if is {
		if next.Lacks(typ) {
			return denied(store.NoData, &next.record)
		}
		return none
	}
	for n := 2; name != apex && n < mostHashes; n++ {
		up := rrset.Parent(name)
		p, is := z.at3(hash(up), now)
		switch {
		case is && (next == nil || p.Leads()):
			return none
		case is:
			return z.enclosed3(up, typ, p, next, now)
		case p == nil && next != nil:
			if p := z.expand(up, typ, &next.record, nil, now); p.ok {
				return p
			}
		}
		name, next = up, p
	}
	return none
}

// enclosed3 answers for a name by its closest encloser, which p matches, and next, which covers the name below that.
func (z *zone) enclosed3(up string, typ uint16, p, next *span3, now store.Time) (none proof) {
	w, is := z.at3(z.spans3[0].Hash(validate.WildcardOf(up)), now)
	switch {
	case w == nil:
		return z.expand(up, typ, &next.record, nil, now)
	case is && w.Lacks(typ):
		return denied(store.NoData, &p.record, &next.record, &w.record)
	case is && w.Leads():
		return none
	case is:
		return z.expand(up, typ, &next.record, w.Has, now)
	}
	return denied(store.NXDomain, &p.record, &next.record, &w.record)
}
