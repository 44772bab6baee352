package validate

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// nsec is an NSEC record that is secure (RFC 4034 §4).
type nsec struct {
	zone   string
	owner  string
	next   string
	bitmap string
}

// parseNSEC reads an NSEC record of a zone. It reports false if that is
// malformed, or leads out of the zone.
func parseNSEC(s *rrset.Set, zone string) (n nsec, ok bool) {
	r := s.First()
	l := nameLen(r)
	if l == 0 {
		return n, false
	}
	n = nsec{zone, s.Name, rrset.Lower(r[:l]), r[l:]}
	return n, rrset.Below(n.owner, zone) && rrset.Below(n.next, zone) && wellFormed(n.bitmap)
}

func (n *nsec) has(typ uint16) bool { return typed(n.bitmap, typ) }

// parental reports whether the owner is a cut, of which this is the upper
// side: its zone knows nothing of what is below.
func (n *nsec) parental() bool { return n.has(wire.TypeNS) && !n.has(wire.TypeSOA) }

// The upper side of a cut, and a DNAME, know nothing of the names below: these are
// another zone's, or led elsewhere (RFC 6840 §4.1, §4.4). So such a record covers none of
// them, though they follow it in the order of names.

// covers reports whether a name lies between owner and next name, and so does
// not exist, but perhaps as an empty non-terminal.
func (n *nsec) covers(name string) bool {
	if !rrset.Below(name, n.zone) || name == n.owner {
		return false
	}
	if rrset.Below(name, n.owner) && (n.parental() || n.has(typeDNAME)) {
		return false // another zone's, or led elsewhere
	}
	if compare(n.owner, name) >= 0 {
		return false
	}
	if n.next == n.zone { // the last one
		return true
	}
	return compare(n.owner, n.next) < 0 && compare(name, n.next) < 0
}

// lacks reports whether the record, which matches a name, says that there are
// no records of a type, nor an alias.
func (n *nsec) lacks(typ uint16) bool {
	if n.has(typ) || n.has(wire.TypeCNAME) {
		return false
	}
	if typ == rrset.TypeDS {
		return !n.has(wire.TypeSOA) || n.owner == rrset.Root
	}
	return !n.parental()
}

// made reports whether the record was made for a question: nothing fits between owner and next name. Who signs such
// lists types that are not there, all but the one that was asked for ("black lies"), so it tells nothing of ANY.
func (n *nsec) made() bool { return n.next == "\x01\x00"+n.owner }

// encloser is the closest encloser of a name that the record covers.
func (n *nsec) encloser(name string) string {
	a, b := common(name, n.owner), common(name, n.next)
	if len(a) > len(b) {
		return a
	}
	return b
}

// nodataNSEC is nodata by NSEC: the name itself (RFC 4035 §5.4), as an empty
// non-terminal, or by a wildcard, which may be one, too (RFC 4592 §2.2.2).
func (d *denials) nodataNSEC(name string, typ uint16) outcome {
	for i := range d.nsec {
		n := &d.nsec[i]
		if n.owner == name {
			switch {
			case n.lacks(typ):
				return proven
			case typ == rrset.TypeANY && n.made() && n.lacks(typeNX):
				return untold
			}
			return unproven
		}
		if !n.covers(name) {
			continue
		}
		if rrset.Below(n.next, name) {
			return proven
		}
		star := wildcardOf(n.encloser(name))
		for j := range d.nsec {
			w := &d.nsec[j]
			if w.owner == star && w.lacks(typ) && !w.parental() || w.covers(star) && rrset.Below(w.next, star) {
				return proven
			}
		}
	}
	return unproven
}

// nxdomainNSEC is nxdomain by NSEC (RFC 4035 §5.4), or by a compact one (RFC
// 9824 §3.3).
func (d *denials) nxdomainNSEC(name string) outcome {
	for i := range d.nsec {
		n := &d.nsec[i]
		if n.owner == name && n.has(typeNX) && n.made() {
			return proven
		}
		if !n.covers(name) || rrset.Below(n.next, name) {
			continue
		}
		star := wildcardOf(n.encloser(name))
		for j := range d.nsec {
			if w := &d.nsec[j]; w.covers(star) && !rrset.Below(w.next, star) {
				return proven
			}
		}
	}
	return unproven
}
