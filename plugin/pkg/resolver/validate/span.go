package validate

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Span is a secure NSEC record for those who answer by it (RFC 8198).
type Span struct{ nsec }

// ParseSpan reads a secure NSEC RRset of a zone. It reports false if that is malformed, leads out of the zone, or was
// made by a wildcard (RFC 4035 §5.4).
func ParseSpan(s *rrset.Set, zone string) (p Span, ok bool) {
	if s.N != 1 || !unexpanded(s) {
		return p, false
	}
	p.nsec, ok = parseNSEC(s, zone)
	return p, ok
}

// unexpanded reports whether all signatures of an RRset have the labels that its owner has.
func unexpanded(s *rrset.Set) bool {
	own, n := true, labelsOf(s.Name)
	s.EachSig(func(r string) bool {
		g, ok := parseSig(r)
		own = own && ok && g.labels == n
		return own
	})
	return own && s.Sigs > 0
}

// Owner of the record, and the name that follows.
func (p *Span) Owner() string { return p.owner }
func (p *Span) Next() string  { return p.next }

// Lacks reports whether the owner has no records of a type, nor an alias; a cut has none that this zone tells of.
func (p *Span) Lacks(typ uint16) bool { return p.lacks(typ) && !p.has(typeDNAME) && !p.has(typeNX) }

// Leads reports whether names below the owner are another zone's, or led elsewhere.
func (p *Span) Leads() bool { return p.parental() || p.has(typeDNAME) }

// Encloser is the closest encloser of a name that the record covers.
func (p *Span) Encloser(name string) string { return p.encloser(name) }

// Span3 is Span for NSEC3.
type Span3 struct{ nsec3 }

// ParseSpan3 is ParseSpan for NSEC3. Records with opt-out, or more iterations than most, are of no use.
func ParseSpan3(s *rrset.Set, zone string, most int) (p Span3, ok bool) {
	if s.N != 1 || !unexpanded(s) {
		return p, false
	}
	p.nsec3, ok = parseNSEC3(s, zone)
	return p, ok && !p.optOut && p.iterations <= most
}

// Has reports whether the owner has records of a type.
func (p *Span) Has(typ uint16) bool { return p.has(typ) }

// Owner is the hash of the owner's name, and Next the one that follows.
func (p *Span3) Owner() string { return p.hash }
func (p *Span3) Next() string  { return p.next }

// Same reports whether both are of one chain: equal parameters.
func (p *Span3) Same(o *Span3) bool { return p.iterations == o.iterations && p.salt == o.salt }

// Hash is the hash of a name by the record's parameters.
func (p *Span3) Hash(name string) string { return hashOf(name, p.salt, p.iterations) }

// Covers reports whether the name of a hash does not exist.
func (p *Span3) Covers(hash string) bool {
	if p.hash < p.next {
		return p.hash < hash && hash < p.next
	}
	return hash > p.hash || hash < p.next
}

// Lacks is Span.Lacks.
func (p *Span3) Lacks(typ uint16) bool {
	return typ != rrset.TypeDS && p.lacks(typ, false) && !p.has(typeDNAME) && !p.has(typeNX)
}

// Has is Span.Has.
func (p *Span3) Has(typ uint16) bool { return p.has(typ) }

// Leads is Span.Leads.
func (p *Span3) Leads() bool { return p.has(wire.TypeNS) && !p.has(wire.TypeSOA) || p.has(typeDNAME) }

// One signature of a secure RRset was verified, and nobody knows here which: a wildcard is only what all of them say.

// SourceOf is the name that the wildcard lies below which a secure RRset is, or was made from: its signatures have
// fewer labels than its owner (RFC 4035 §5.3.2). It reports false if there is no wildcard.
func SourceOf(s *rrset.Set) (encloser string, ok bool) {
	n, labels := rrset.Labels(s.Name), -1
	s.EachSig(func(r string) bool {
		g, good := parseSig(r)
		ok = good && g.labels < n && (labels < 0 || labels == g.labels)
		labels = g.labels
		return ok
	})
	if !ok {
		return "", false
	}
	return rrset.Last(s.Name, labels), true
}

// SignerOf is the deepest zone that a signature of an RRset names, empty if there is none.
func SignerOf(s *rrset.Set) string { return signerOf(s) }

// WildcardOf is the wildcard below a name.
func WildcardOf(name string) string { return wildcardOf(name) }
