package dynupdate

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// policy is who may change what.
type policy struct {
	rules []rule
	nets  []netip.Prefix // none: any
}

// rule is one allow, deny or self line.
type rule struct {
	key   string // fully qualified and in lower case
	self  bool   // the name is the key's own; key may be a pattern then: from "*." on, keys with one label more
	deny  bool
	name  []byte // in wire form; nil: all names
	below bool   // and all names below it
	types typeSet
}

// typeSet is types that a rule is for.
type typeSet struct {
	all   bool
	types []uint16
}

func (t *typeSet) has(typ uint16) bool { return t.all || slices.Contains(t.types, typ) }

// names reports whether a type itself is among them.
func (t *typeSet) names(typ uint16) bool { return slices.Contains(t.types, typ) }

// fits reports whether the rule is about a key, a lower name and a type. Names outside of the zone are left to the
// check of names.
func (r *rule) fits(key string, name []byte, typ uint16) bool {
	return r.types.has(typ) && r.isFor(key, name)
}

// isFor is fits for any type.
func (r *rule) isFor(key string, name []byte) bool {
	if !r.isKey(key) {
		return false
	}
	if r.self {
		own, err := wire.LowerName(key)
		return err == nil && string(own) == string(name)
	}
	return r.name == nil || string(r.name) == string(name) || r.below && wire.Below(name, r.name)
}

// isKey reports whether the rule is for a key.
func (r *rule) isKey(key string) bool {
	rest, pattern := strings.CutPrefix(r.key, "*.")
	if !r.self || !pattern {
		return r.key == key
	}
	at, end := dns.NextLabel(key, 0)
	return !end && key[at:] == rest
}

// knows reports whether any rule gives a key anything.
func (p *policy) knows(key string) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool { return !r.deny && r.isKey(key) })
}

// without is the keys that rules give something, but that do not exist: has tells of those that do. Patterns are left out.
func (p *policy) without(has func(key string) bool) (keys []string) {
	for _, r := range p.rules {
		if !r.deny && !(r.self && strings.HasPrefix(r.key, "*.")) && !has(r.key) && !slices.Contains(keys, r.key) {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// allows reports whether a key may change records of a type at a lower name; dns.TypeANY is to delete them all, and has
// tells of which types there are some. With deny lines the first line that fits decides, else any line that allows it.
// Who may not delete records of a type may not do so together with all others either.
func (p *policy) allows(key string, name []byte, typ uint16, has func(typ uint16) bool) bool {
	for i := range p.rules {
		r := &p.rules[i]
		switch {
		case r.fits(key, name, typ):
			return !r.deny
		case typ == dns.TypeANY && r.deny && r.isFor(key, name) && slices.ContainsFunc(r.types.types, has):
			return false
		}
	}
	return false
}

// admits reports whether a type that is otherwise not taken, as DNSSEC needs it right, is named by a rule that allows
// it, be it for a key and a lower name, or, without a key, for any.
func (p *policy) admits(typ uint16, key string, name []byte) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool { return !r.deny && r.types.names(typ) && (key == "" || r.isFor(key, name)) })
}

// from reports whether a client's address is one that updates may come from.
func (p *policy) from(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return len(p.nets) == 0 || slices.ContainsFunc(p.nets, func(n netip.Prefix) bool { return n.Contains(a) })
}

// DNSSEC's own types, and others that say something about the rest of the zone, are not taken: nobody here keeps them
// right.
var refusedTypes = []uint16{
	dns.TypeSIG, dns.TypeKEY, dns.TypeNXT, dns.TypeDS, dns.TypeRRSIG, dns.TypeNSEC, dns.TypeDNSKEY, dns.TypeNSEC3, dns.TypeNSEC3PARAM,
	dns.TypeTALINK, dns.TypeCDS, dns.TypeCDNSKEY, dns.TypeTA, dns.TypeDLV, dns.TypeZONEMD,
}

// takes reports whether records of a type may be in the zone, at the apex or not, by an update that a key has signed if
// there is one.
func (p *policy) takes(typ uint16, apex bool, key string, name []byte) bool {
	return !slices.Contains(refusedTypes, typ) || mayBeNamed(typ) && apex != (typ == dns.TypeDS) && p.admits(typ, key, name)
}
