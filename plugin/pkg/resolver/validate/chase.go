package validate

import (
	"slices"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// mostChased is how many targets of one reply are asked for.
const mostChased = 11

// Some forwarders answer with an alias alone and leave the rest to who asked (RFC 1034 §3.6.2 lets them). A reply that
// ends so denies nothing, so it is no fault that it proves nothing of the target.

// deniesNothing reports whether a reply has neither proof of what there is not, nor the SOA record that unsigned zones
// have in place of that (RFC 2308 §2).
func (t *Task) deniesNothing() bool {
	return t.reply.Rcode == wire.Success && !slices.ContainsFunc(t.reply.Section[rrset.Authority], denies)
}

// chase has the target of an alias that a reply ends with asked for, and goes on as if it stood in the
// reply. It reports false if that was done before, or did not help. What is not needed to judge the reply is not asked
// for if no recursion is desired; and who refuses it is an authority, which leaves it to who asked.
func (t *Task) chase(v *Verdict, name string, needed bool) bool {
	q := Question{name, t.q.Type}
	if slices.Contains(t.chased, q) || len(t.chased) == mostChased || t.over != "" || len(t.missing) > 0 ||
		!needed && t.alone {
		return false
	}
	m, ok := t.replies[q]
	if !ok {
		t.need(q)
		return true
	}
	if !needed && m != nil && m.Rcode == wire.Refused {
		return false
	}
	t.chased = append(t.chased, q)
	if m == nil {
		return false
	}
	whole := *t.reply
	whole.Rcode = m.Rcode
	whole.Section[rrset.Answer] = slices.Concat(t.reply.Section[rrset.Answer], m.Section[rrset.Answer])
	whole.Section[rrset.Authority] = slices.Concat(t.reply.Section[rrset.Authority], m.Section[rrset.Authority])
	t.reply = &whole
	*v = *t.judge()
	return true
}

// A reply from above a cut often has the proof with it that the cut is unsigned: what denies the name's other types
// denies its DS records, too.

// told is the node of a name that the reply itself proves to be an unsigned delegation, nil if it does not.
func (t *Task) told(parent string, p *Node, name string) *Node {
	may := false
	for _, s := range t.reply.Section[rrset.Authority] {
		may = may || (s.Type == rrset.TypeNSEC && s.Name == name || s.Type == rrset.TypeNSEC3) && s.Sigs > 0 && signerOf(s) == parent
	}
	if !may {
		return nil
	}
	d := t.denials(t.reply, parent, p)
	k, f := d.atCut(name)
	if k != ended || f.Status != Insecure || t.over != "" || d.param.Status != 0 {
		return nil
	}
	return t.keep(name, &Node{kind: ended, Finding: at(f, parent)}, d.until)
}

// unsigned is the node of an unsigned delegation at or above a name, which the reply itself proves; nil if there is
// none. Some servers have zone and unsigned subzone, and answer for the one with the proof of the other. DS RRsets are
// those of the zone above their owner, so that a cut at the name is none for them.
func (t *Task) unsigned(name, apex string, z *Node) *Node {
	if t.q.Type == rrset.TypeDS {
		name = rrset.Parent(name)
	}
	authority := t.reply.Section[rrset.Authority]
	any := slices.ContainsFunc(authority, func(s *rrset.Set) bool { return s.Type == rrset.TypeNSEC3 && parentSide(s) })
	for i := rrset.Labels(apex) + 1; i <= rrset.Labels(name); i++ {
		if cut := rrset.Last(name, i); any || find(authority, cut, rrset.TypeNSEC) != nil {
			if n := t.told(apex, z, cut); n != nil {
				return n
			}
		}
	}
	return nil
}

// parentSide reports whether an NSEC3 record is that of an unsigned delegation.
func parentSide(s *rrset.Set) bool {
	n, ok := parseNSEC3(s, rrset.Parent(s.Name))
	return ok && n.parental() && !n.has(rrset.TypeDS)
}
