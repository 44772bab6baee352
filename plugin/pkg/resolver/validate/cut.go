package validate

import (
	"slices"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Where zones begin changes: one is merged into its parent, or made of some of its names, or is signed no more. What is
// kept of the chain then stands against what is signed, until its time is over. So it is told with a bogus Verdict, and
// the caller can have the chain walked anew there.

// outdated notes what is kept of the names below a zone, down to a target: it may not be true any more. It counts only
// if the Verdict is bogus. What belongs to an anchor is no word of the zone above.
func (t *Task) outdated(apex, target string) {
	if t.conf.Memory == nil || t.glance {
		return
	}
	for name := target; len(name) > len(apex); name = rrset.Parent(name) {
		if t.conf.Anchors[name] == nil && !slices.Contains(t.kept, name) && t.conf.Memory.Node(name, t.now) != nil {
			t.kept = append(t.kept, name)
		}
	}
}

// stripped is outdated for what ought to be signed by a zone and is not: the zone itself may be unsigned by now.
func (t *Task) stripped(apex, target string) {
	t.outdated(rrset.Parent(apex), target)
}

// broke is outdated for where the chain broke: the zone that was asked there may not be the one that the name lies in.
func (t *Task) broke(name string, n *Node) {
	switch {
	case !n.Broken() || n.Zone == "" || n.Code == dns.ExtendedErrorCodeDNSSECIndeterminate:
	case n.Code == dns.ExtendedErrorCodeNSECMissing || n.Code == dns.ExtendedErrorCodeRRSIGsMissing:
		t.stripped(n.Zone, name)
	default:
		t.outdated(n.Zone, name)
	}
}

// lower reports whether a zone below one that signed a denial may be the one that denies a name, as it does not sign.
// The other denial is then that of what a wildcard's alias led away from.
func (t *Task) lower(name, apex string) bool {
	return slices.ContainsFunc(t.reply.Section[rrset.Authority], func(s *rrset.Set) bool {
		return s.Type == wire.TypeSOA && s.Sigs == 0 && s.Name != apex && rrset.Below(s.Name, apex) && rrset.Below(name, s.Name)
	})
}

// beneath reports whether an RRset lies in a zone below the one named: who signs for what was handed on is not
// believed. It looks at what is known, and has the chain followed to where a server has answered for a zone (see Told).
// To follow it to each owner would cost a question more for most names. Where it cannot be followed, the signature
// counts.
func (t *Task) beneath(s *rrset.Set, zoneName string) bool {
	from := s.Name
	if s.Type == rrset.TypeDS || s.Type == rrset.TypeNSEC {
		from = rrset.Parent(from)
	}
	for ; len(from) > len(zoneName); from = rrset.Parent(from) {
		n := t.node(from)
		if n == nil && slices.Contains(t.cuts, from) {
			t.walk(from)
			if n = t.node(from); n == nil && len(t.missing) > 0 {
				return false
			}
		}
		if t.conf.Anchors[from] != nil || n != nil && (n.kind == zone || n.kind == cut) {
			return true
		}
	}
	return false
}
