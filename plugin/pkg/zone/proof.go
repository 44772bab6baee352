package zone

import (
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// What a signed zone does not have is proved to who asks with DO (RFC 4035 §3.1.3, RFC 5155 §7.2): by
// NSEC or NSEC3 records in the authority section. They are noted while the answer is found and written behind
// the SOA or NS records. Each of the functions below is one case of these RFCs.

// maxProofs is how many records prove the longest way through a zone: a synthesis at each name, and a denial at the
// end.
const maxProofs = maxAliases + 3

// prove notes the record of a node as part of the proof, once.
func (a *Answerer) prove(n Node) {
	if n == nil {
		return
	}
	for _, p := range a.proofs {
		if &p[0] == &n[0] {
			return
		}
	}
	if len(a.proofs) < maxProofs {
		a.proofs = append(a.proofs, n)
	}
}

// proves reports whether proofs are wanted and there are some, and of which kind.
func (a *Answerer) proves() bool { return a.do && (a.z.hasNSEC() || a.hashes()) }
func (a *Answerer) hashes() bool { return a.z.nsec3 != nil && a.z.nsec3.usable() }

// proveNoData: the name exists, but not the type (RFC 4035 §3.1.3.1, RFC 5155 §7.2.3 and §7.2.4). An empty
// non-terminal has no NSEC record; the one that covers its name shows the next name to be below it. With
// opt-out there may be no NSEC3 record either. A zone cut without DS records is such a case, too, whether they
// were asked for or it is referred to (RFC 4035 §3.1.4.1, RFC 5155 §7.2.7).
func (a *Answerer) proveNoData(n Node, name []byte) {
	switch {
	case !a.proves():
	case a.hashes():
		if match, ok := a.z.nsec3.match(a.z, name); ok {
			a.prove(match)
		} else {
			a.proveEncloser(name, len(wire.Parent(name)))
		}
	case n.Set(typeNSEC) != nil:
		a.prove(n)
	default:
		a.prove(a.cover(name))
	}
}

// proveMissing: neither the name nor a wildcard that could stand for it exists (RFC 4035 §3.1.3.2,
// RFC 5155 §7.2.2). encloser is the closest encloser. With NSEC3 records the wildcard is that below the encloser
// which is proved, for resolvers know no other; with opt-out it may be shorter.
func (a *Answerer) proveMissing(name []byte, encloser Node) {
	if !a.proves() {
		return
	}
	from := len(encloser.prefix()) + len(a.z.origin)
	if a.hashes() {
		proved := a.proveEncloser(name, from)
		if star := a.wildcardAt(name[len(name)-proved:]); star != nil {
			a.prove(a.z.nsec3.cover(a.z, star))
		}
		return
	}
	a.prove(a.cover(name))
	if star := a.wildcardAt(name[len(name)-from:]); star != nil {
		a.prove(a.cover(star))
	}
}

// proveExpansion: no closer match than the wildcard exists (RFC 4035 §3.1.3.3, RFC 5155 §7.2.6). source is the
// wildcard's node, one label below the closest encloser.
func (a *Answerer) proveExpansion(name []byte, source Node) {
	switch {
	case !a.proves():
	case a.hashes():
		a.prove(a.z.nsec3.cover(a.z, nextCloser(name, len(source.prefix())-2+len(a.z.origin))))
	default:
		a.prove(a.cover(name))
	}
}

// proveWildcardNoData: the wildcard exists, but not the type, and no closer match (RFC 4035 §3.1.3.4,
// RFC 5155 §7.2.5).
func (a *Answerer) proveWildcardNoData(name []byte, source Node) {
	if !a.proves() {
		return
	}
	from := len(source.prefix()) - 2 + len(a.z.origin)
	if a.hashes() {
		a.proveEncloser(name, from)
		if match, ok := a.z.nsec3.match(a.z, a.wildcardAt(name[len(name)-from:])); ok {
			a.prove(match)
		}
		return
	}
	if source.Set(typeNSEC) != nil {
		a.prove(source)
	} else {
		a.prove(a.cover(a.wildcardAt(name[len(name)-from:])))
	}
	a.prove(a.cover(name))
}

// proveEncloser is the closest encloser proof (RFC 5155 §7.2.1): the longest ancestor of a name that has a
// record, and that the next closer name has none. Ancestors longer than from octets are known to have none. proved is
// the ancestor's octets.
func (a *Answerer) proveEncloser(name []byte, from int) (proved int) {
	for ancestor := name[len(name)-from:]; len(ancestor) >= len(a.z.origin); ancestor = wire.Parent(ancestor) {
		if match, ok := a.z.nsec3.match(a.z, ancestor); ok {
			a.prove(match)
			a.prove(a.z.nsec3.cover(a.z, nextCloser(name, len(ancestor))))
			return len(ancestor)
		}
		if len(ancestor) == 1 {
			break
		}
	}
	return from
}

// nextCloser is the name one label longer than the ancestor of n octets.
func nextCloser(name []byte, n int) []byte {
	for {
		parent := wire.Parent(name)
		if len(parent) <= n {
			return name
		}
		name = parent
	}
}

// cover is the node whose NSEC record covers a name that has none: its predecessor.
func (a *Answerer) cover(name []byte) Node {
	if a.z.grown != nil {
		return a.z.nsecBefore(name[:len(name)-len(a.z.origin)])
	}
	n, _ := a.z.nsec.before(a.z, name[:len(name)-len(a.z.origin)])
	return n
}

// wildcardAt is the wildcard below a name, nil if that would be too long. It holds until the next call.
func (a *Answerer) wildcardAt(encloser []byte) []byte {
	if len(encloser)+2 > wire.MaxName {
		return nil
	}
	return append(append(a.starBuf[:0], 1, '*'), encloser...)
}
