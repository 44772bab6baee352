package aggressive

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// A resolver keeps what a wildcard was expanded to under the name that was asked, for there alone the reply proves that
// nothing is closer. The RRset is the wildcard's all the same: its signature says so, and was verified as the
// wildcard's. So it lies here, apart from all names, and is used only with a denial that proves for the new name what
// the old one proved for the old name (RFC 8198 §5.3).

// wildKey is what a wildcard's RRset is found by: the name that the asterisk stands below.
type wildKey struct {
	encloser string
	typ      uint16
}

const (
	mostWilds  = 1024 // of one zone
	wildOctets = 150  // beside the RRset
)

// wildcardOf is the wildcard's RRset that a secure one was made from, or is itself; nil if there is none. A wildcard
// that delegates, or leads elsewhere, stands for nothing (RFC 4592 §4.2, §4.4).
func wildcardOf(set *rrset.Set) (k wildKey, wild *rrset.Set) {
	switch set.Type {
	case wire.TypeNS, wire.TypeDNAME, rrset.TypeDS, rrset.TypeDNSKEY, rrset.TypeNSEC3PARAM, wire.TypeRRSIG:
		return k, nil
	}
	encloser, ok := validate.SourceOf(set)
	if !ok {
		return k, nil
	}
	return wildKey{encloser, set.Type}, set.Under(validate.WildcardOf(encloser), set.TTL)
}

// addWild adds a wildcard's RRset, in place of an older one; of too many, any other goes.
func (z *zone) addWild(k wildKey, r record) {
	if z.wilds == nil {
		z.wilds = map[wildKey]record{}
	}
	old, ok := z.wilds[k]
	if ok {
		z.octets -= old.set.Size() + wildOctets
	}
	for other, r := range z.wilds {
		if ok || len(z.wilds) < mostWilds {
			break
		}
		z.octets -= r.set.Size() + wildOctets
		delete(z.wilds, other)
	}
	z.wilds[k] = r
	z.octets += r.set.Size() + wildOctets
}

// expand is what the wildcard below a name has of a type, or its alias. next proves that nothing is closer to the name
// that is asked than the wildcard; has tells which types the wildcard is known to have, nil if nothing tells that.
func (z *zone) expand(encloser string, typ uint16, next *record, has func(uint16) bool, now store.Time) (p proof) {
	for _, typ := range [2]uint16{typ, wire.TypeCNAME} {
		if has != nil && !has(typ) {
			continue
		}
		if w, ok := z.wilds[wildKey{encloser, typ}]; ok && w.until > now {
			p.kind, p.wild, p.ok = store.Positive, w, true
			p.by(next)
			return p
		}
	}
	return p
}
