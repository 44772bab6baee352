package aggressive

import (
	"slices"
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
	all  []record
	ok   bool
}

// Only the deepest zone that is known at or above a name is asked. One above it knows nothing of the names in it (RFC
// 6840 §4.1), and its records are checked for that once more by Span.Covers.

// Deny is the denial of a name, or of its records of a type, that follows from what is kept, nil if nothing does. Its
// TTL is the least of what is left of its records, and of SOA MINIMUM (RFC 8198 §5.4).
func (s *Store) Deny(name string, typ uint16, now store.Time) *store.Entry {
	if typ == rrset.TypeDS || typ == rrset.TypeANY || typ == wire.TypeRRSIG || typ == rrset.TypeNSEC || typ == rrset.TypeNSEC3 {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.zones) == 0 {
		return nil
	}
	for apex := name; ; apex = rrset.Parent(apex) {
		if z := s.zones[apex]; z != nil && z.soa.set != nil && z.soa.until > now {
			p := z.bySpans(name, typ, now)
			if !p.ok && len(z.spans3) > 0 {
				p = z.bySpans3(apex, name, typ, now)
			}
			if p.ok {
				return z.entry(apex, p, now)
			}
			if len(z.spans)+len(z.spans3) > 0 {
				return nil // only a zone's own denials count, and those above do not know it
			}
		}
		if apex == rrset.Root {
			return nil
		}
	}
}

// entry is a proof as a resolver keeps denials.
func (z *zone) entry(apex string, p proof, now store.Time) *store.Entry {
	until := min(z.soa.until, now.After(rrset.SOAMinimum(z.soa.set.First())))
	e := &store.Entry{Kind: p.kind, Rank: store.SecureData, Status: store.Secure, SOA: z.soa.set, Zone: apex}
	for _, r := range p.all {
		until = min(until, r.until)
	}
	for _, r := range p.all {
		if !slices.Contains(e.Denials, r.set) {
			e.Denials = append(e.Denials, r.set)
		}
	}
	e.Expires, e.TTL = until, until.Left(now)
	if e.TTL == 0 {
		return nil
	}
	return e
}

// at is the record that a name matches or that covers it, nil if none that lives does.
func (z *zone) at(name string, now store.Time) *span {
	o := order(name)
	i := sort.Search(len(z.spans), func(i int) bool { return z.spans[i].order > o }) - 1
	if i < 0 {
		return nil
	}
	p := &z.spans[i]
	if p.until <= now || p.Owner() != name && !p.Covers(name) {
		return nil
	}
	return p
}

// A name that is covered does not exist, but a wildcard might answer for it: that has to be denied, too, or to lack the
// type (RFC 8198 §5.1). Positive answers by wildcards are not made up.

// bySpans denies by NSEC (RFC 4035 §5.4).
func (z *zone) bySpans(name string, typ uint16, now store.Time) (none proof) {
	p := z.at(name, now)
	switch {
	case p == nil:
		return none
	case p.Owner() == name:
		return proof{store.NoData, []record{p.record}, p.Lacks(typ)}
	case rrset.Below(p.Next(), name): // an empty non-terminal
		return proof{store.NoData, []record{p.record}, true}
	}
	star := validate.WildcardOf(p.Encloser(name))
	w := z.at(star, now)
	switch {
	case w == nil:
		return none
	case w.Owner() == star:
		return proof{store.NoData, []record{p.record, w.record}, w.Lacks(typ)}
	case rrset.Below(w.Next(), star):
		return none
	}
	return proof{store.NXDomain, []record{p.record, w.record}, true}
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

// bySpans3 denies by NSEC3 (RFC 5155 §8.4 to §8.7).
func (z *zone) bySpans3(apex, name string, typ uint16, now store.Time) (none proof) {
	hash := z.spans3[0].Hash
	next, is := z.at3(hash(name), now)
	switch {
	case next == nil:
		return none
	case is:
		return proof{store.NoData, []record{next.record}, next.Lacks(typ)}
	}
	for n := 2; name != apex && n < mostHashes; n++ {
		up := rrset.Parent(name)
		p, is := z.at3(hash(up), now)
		if p == nil {
			return none
		}
		if !is {
			name, next = up, p
			continue
		}
		if p.Leads() {
			return none
		}
		w, is := z.at3(hash(validate.WildcardOf(up)), now)
		switch {
		case w == nil:
			return none
		case is:
			return proof{store.NoData, []record{p.record, next.record, w.record}, w.Lacks(typ)}
		}
		return proof{store.NXDomain, []record{p.record, next.record, w.record}, true}
	}
	return none
}
