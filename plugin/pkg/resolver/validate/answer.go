package validate

import (
	"slices"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// mostLinks is how many aliases of a reply are followed.
const mostLinks = 32

// Nothing of a reply is believed because it stands beside something that is. Each
// RRset is judged by the zone that it lies in; the whole is as good as its worst part
// that the answer depends on.
//
// The steps are run again from the beginning whenever something was missing: what was
// found out lies in the Task, so that costs look-ups and no arithmetic. Until all is
// there, what is not known yet counts as secure, which no Verdict is made of.

// judge goes through a reply from the question on: each alias, then the answer
// or its denial, then what else there is. What is missing is noted, and judge
// is called again.
func (t *Task) judge() *Verdict {
	v := &Verdict{Finding: Finding{Status: Secure}, Rcode: t.reply.Rcode, Chased: t.chased}
	if t.q.Type == typeRRSIG { // signatures are not signed
		v.Finding = Finding{Status: Indeterminate}
		return v
	}
	if t.q.Type == rrset.TypeDS && t.superseded(t.q.Name) {
		v.Finding = Finding{Status: Indeterminate}
		return v
	}
	if v.Rcode != wire.Success && v.Rcode != wire.NXDomain && v.Rcode != dns.RcodeYXDomain { // it says nothing of data
		v.Finding = Finding{Status: Indeterminate}
		return v
	}
	if t.denying(t.reply); t.over != "" {
		return v
	}
	var seen judged
	var end string
	reply := t.reply
	v.Finding, end = t.links(v, &seen)
	if t.reply != reply { // it was judged anew, with more in it
		return v
	}
	for _, s := range t.reply.Section[rrset.Answer] {
		if !t.goesOn(v) || !t.look(0) {
			return v
		}
		if !seen.has(s) {
			t.behind(v, s, seen)
		}
	}
	for _, s := range t.reply.Section[rrset.Authority] {
		if !t.goesOn(v) || !t.look(0) {
			return v
		}
		t.beside(v, s, end)
	}
	if len(t.reply.Section[rrset.Answer])+len(t.reply.Section[rrset.Authority]) == 0 && v.Status == Secure {
		v.Finding = bogus(dns.ExtendedErrorCodeNSECMissing, "nothing is said")
	}
	if v.Status == Secure && t.goesOn(v) {
		t.additional(v)
		v.Proof = make([]Proven, 0, len(t.checks))
		for i := range t.checks {
			if c := &t.checks[i]; c.Status == Secure {
				v.Proof = append(v.Proof, Proven{c.set, c.TTL})
			}
		}
	}
	return v
}

// behind judges an RRset of the answer section that neither answers nor leads on. If nobody has asked for it, it is
// left out of a secure reply without a look, and of others if it is bogus.
func (t *Task) behind(v *Verdict, s *rrset.Set, seen judged) {
	asked, f := t.counted(s, seen), Finding{Status: Bogus}
	if asked || v.Status != Secure {
		f = t.positive(s)
	}
	if !asked && f.Status == Bogus {
		v.Unasked = append(v.Unasked, s)
		return
	}
	v.Finding = worse(v.Finding, f)
}

// counted reports whether an RRset of s's name and type belongs to the answer, or to what proves it: a reply may have
// it twice.
func (t *Task) counted(s *rrset.Set, seen judged) bool {
	return find(seen, s.Name, s.Type) != nil ||
		slices.ContainsFunc(t.checks, func(c checkedSet) bool { return c.set.Name == s.Name && c.set.Type == s.Type })
}

// additional checks what of the additional section can be checked by keys that are there.
func (t *Task) additional(v *Verdict) {
	for _, s := range t.reply.Section[rrset.Additional] {
		if s.Sigs == 0 || len(v.Additional) == mostAdditional || t.left.Checks == 0 {
			continue
		}
		if f := t.positive(s); f.Status == Secure && len(t.missing) == 0 && t.over == "" {
			v.Additional = append(v.Additional, Proven{s, t.checked(s).TTL})
		}
		t.missing, t.over = nil, "" // nothing depends on it
	}
}

// mostAdditional is how many RRsets of the additional section are handed on.
const mostAdditional = 8

// goesOn reports whether more is to be looked at: what is bogus, or waits,
// needs no more.
func (t *Task) goesOn(v *Verdict) bool {
	return v.Status != Bogus && len(t.missing) == 0 && t.over == ""
}

// beside judges an RRset of the authority section, which stands there for the name
// at the end of the aliases. NS and other RRsets that prove nothing may be left out: so may a
// SOA, unless it is that of a denial (RFC 4035 §3.2.3).
func (t *Task) beside(v *Verdict, s *rrset.Set, end string) {
	if c := t.checked(s); c != nil && c.Status == Secure {
		return
	}
	f := t.positive(s)
	if f.Status <= v.Status || len(t.missing) > 0 {
		return
	}
	if s.Type == wire.TypeSOA && v.denies && rrset.Below(end, s.Name) && !t.closerSOA(s, end) {
		v.Finding = worse(v.Finding, blame(f, end))
		return
	}
	v.Unproven = append(v.Unproven, s)
}

// closerSOA reports whether a zone between that of the SOA record s and a name has signed one, too: the denial is that
// zone's, as some resolvers add what they have of the zones above.
func (t *Task) closerSOA(s *rrset.Set, name string) bool {
	return slices.ContainsFunc(t.reply.Section[rrset.Authority], func(o *rrset.Set) bool {
		return o.Type == wire.TypeSOA && o.Sigs > 0 && len(o.Name) > len(s.Name) && rrset.Below(name, o.Name)
	})
}

// judged is the RRsets of the answer section that aliases have led to.
type judged []*rrset.Set

func (j *judged) add(s *rrset.Set)      { *j = append(*j, s) }
func (j *judged) has(s *rrset.Set) bool { return slices.Contains(*j, s) }

// links follows the aliases of a reply from the question's name to their end.
func (t *Task) links(v *Verdict, seen *judged) (f Finding, name string) {
	name, f = t.q.Name, Finding{Status: Secure}
	answer := t.reply.Section[rrset.Answer]
	for range mostLinks {
		if len(t.missing) > 0 || t.over != "" || f.Status == Bogus {
			return f, name
		}
		if any, g := t.final(name, answer, seen); any {
			v.Rcode = wire.Success
			return worse(f, blame(g, name)), name
		}
		next, g, ok := t.link(name, answer, seen)
		if f = worse(f, blame(g, name)); !ok {
			if f.Status == Bogus || len(t.missing) > 0 {
				return f, name
			}
			if next == name { // a DNAME, which was judged, makes it too long (RFC 6672 §2.2)
				v.Rcode = dns.RcodeYXDomain
				return f, name
			}
			g := t.negative(v, name)
			if name != t.q.Name && (g.Status == Bogus || t.deniesNothing()) && t.chase(v, name, g.Status == Bogus) {
				return v.Finding, name
			}
			return worse(f, blame(g, name)), name
		}
		name = next
	}
	return bogus(dns.ExtendedErrorCodeOther, "alias loop"), name
}

// blame is a finding about a name of the chain of aliases.
func blame(f Finding, name string) Finding {
	if f.Status == Bogus {
		f.Name = name
	}
	return f
}

// final judges the RRsets that answer the question at a name; any is false if
// there are none.
func (t *Task) final(name string, answer []*rrset.Set, seen *judged) (any bool, f Finding) {
	f = Finding{Status: Secure}
	n := 0
	for _, s := range answer {
		if s.Name != name || s.Type != t.q.Type && t.q.Type != rrset.TypeANY || s.Type == typeRRSIG {
			continue
		}
		if n++; n > t.conf.Budget.Any {
			t.over = "rrsets_any"
			break
		}
		any = true
		if seen.add(s); s.Type == wire.TypeCNAME {
			if d, _, fits := maker(name, s, answer); d != nil && fits {
				seen.add(d)
				s = d
			}
		}
		f = worse(f, t.positive(s))
	}
	return any, f
}

// maker is the DNAME that an alias of a name was made of, or would be if there is none, as cname may be nil; to is what
// it leads to, unless that does not fit a name. It is nil if there is none, or cname says something else. Of several it
// is the closest one, in whatever order they stand.
func maker(name string, cname *rrset.Set, answer []*rrset.Set) (d *rrset.Set, to string, fits bool) {
	for _, s := range answer {
		if s.Type != typeDNAME || s.Name == name || !rrset.Below(name, s.Name) || s.N != 1 || d != nil && len(d.Name) > len(s.Name) {
			continue
		}
		target, fit := rrset.Replace(name, s.Name, rrset.Target(s.First()))
		if fit && cname != nil && (cname.N != 1 || rrset.Target(cname.First()) != target) {
			continue // it is judged by its own signature
		}
		d, to, fits = s, target, fit
	}
	return d, to, fits
}

// link judges the alias of a name, and is its target. ok is false if there is
// none; next is the name itself if a DNAME makes it too long.
func (t *Task) link(name string, answer []*rrset.Set, seen *judged) (next string, f Finding, ok bool) {
	f = Finding{Status: Secure}
	cname := find(answer, name, wire.TypeCNAME)
	if d, to, fits := maker(name, cname, answer); d != nil {
		if seen.add(d); !fits {
			return name, t.positive(d), false
		}
		if cname != nil {
			seen.add(cname)
		}
		return to, t.positive(d), true
	}
	if cname == nil {
		return "", f, false
	}
	seen.add(cname)
	if cname.N != 1 {
		return "", bogus(dns.ExtendedErrorCodeDNSBogus, "two aliases of one name"), false
	}
	return rrset.Target(cname.First()), t.positive(cname), true
}

// The zone of a signed RRset is the one that its signature names, if the chain leads
// there. Without a signature the chain is followed as far as the owner: only if it ends
// above, at a proven unsigned delegation, the RRset need not be signed.

// positive judges one RRset: it is signed by its zone; and where it was made
// from a wildcard, nothing is closer.
func (t *Task) positive(s *rrset.Set) Finding {
	if s.Type == typeRRSIG {
		return Finding{Status: Indeterminate}
	}
	if !t.look(rrset.Labels(s.Name)) {
		return Finding{Status: Secure} // nobody makes a Verdict of that
	}
	if n := t.exempt(s.Name); n != nil {
		return n.Finding
	}
	signer := signerOf(s)
	target := signer
	if target == "" {
		target = s.Name
		if s.Type == rrset.TypeDS {
			target = rrset.Parent(target)
		}
	}
	name, z, ok := t.walk(target)
	if !ok {
		return Finding{Status: Secure} // not known yet
	}
	if z.kind != zone {
		t.broke(name, z)
		return z.Finding
	}
	if signer != "" && name != signer {
		t.outdated(name, signer)
		return at(bogus(dns.ExtendedErrorCodeDNSBogus, "signed by what is no zone: "+clip(rrset.Text(signer))), name)
	}
	if t.beneath(s, name) {
		t.outdated(name, s.Name)
		return at(bogus(dns.ExtendedErrorCodeDNSBogus, "signed by a zone above its own: "+clip(rrset.Text(name))), name)
	}
	if len(t.missing) > 0 {
		return Finding{Status: Secure} // not known yet
	}
	c := t.check(s, name, z.keys, z.id)
	if signer == "" && c.Status == Bogus {
		t.stripped(name, s.Name)
	}
	if c.Status != Secure || c.Labels == labelsOf(s.Name) {
		return c.Finding
	}
	// A DNAME stands for all below it already (RFC 6672 §3.3), and a denial that a
	// wildcard made would deny anything (RFC 4035 §5.4, RFC 5155 §8). Who asks for an
	// NSEC, or for all there is, may see one, of which nothing follows (RFC 4592 §4.7).
	asked := t.q.Type == rrset.TypeNSEC || t.q.Type == rrset.TypeANY
	if s.Type == typeDNAME || s.Type == rrset.TypeNSEC && !asked || s.Type == rrset.TypeNSEC3 {
		return at(bogus(dns.ExtendedErrorCodeDNSBogus, "a wildcard made "+about(s)), name)
	}
	d := t.denials(t.reply, name, z)
	return d.finding(d.noCloser(s.Name, c.Labels), rrset.Text(s.Name))
}

// A server may be wrong in the rcode and right in the denial: empty non-terminals are
// called NXDOMAIN by some (RFC 8020 §3). The reverse is not corrected, as a reply to
// another question could be made of it.

// negative judges the denial of a name, or of its type. Where the rcode is
// wrong, but the denial of the type is good, the rcode is corrected.
func (t *Task) negative(v *Verdict, name string) Finding {
	v.denies = true
	if n := t.exempt(name); n != nil {
		return n.Finding
	}
	target := t.denier(name)
	if from := (&rrset.Set{Name: name, Type: t.q.Type}); target != "" && t.beneath(from, target) {
		t.outdated(target, name)
		target = "" // a zone above its own has nothing to say of the name
	}
	signed := target != "" && !t.lower(name, target)
	if !signed {
		target = name
		if t.q.Type == rrset.TypeDS && name != rrset.Root {
			target = rrset.Parent(name)
		}
	}
	apex, z, ok := t.walk(target)
	switch {
	case !ok:
		return Finding{Status: Secure} // not known yet
	case z.kind != zone:
		t.broke(apex, z)
		return z.Finding
	case signed && apex != target:
		t.outdated(apex, target)
		return at(bogus(dns.ExtendedErrorCodeDNSBogus, "signed by what is no zone: "+clip(rrset.Text(target))), apex)
	}
	if n := t.unsigned(name, apex, z); n != nil {
		return n.Finding
	}
	d := t.denials(t.reply, apex, z)
	if !signed {
		t.stripped(apex, name)
	}
	if v.Rcode != wire.NXDomain {
		o := d.nodata(name, t.q.Type)
		if o == proven { // no DNAME has made a name too long
			v.Rcode = wire.Success
		}
		return d.finding(o, rrset.Text(name))
	}
	if o := d.nxdomain(name); o != unproven {
		return d.finding(o, "")
	}
	if o := d.nodata(name, t.q.Type); o == proven {
		v.Rcode = wire.Success
		return d.finding(o, "")
	}
	return d.finding(unproven, rrset.Text(name))
}

// denier is the deepest zone above a name that signed something of its denial,
// empty if none did. DS RRsets are denied by a zone above their owner.
func (t *Task) denier(name string) (zone string) {
	for _, s := range t.reply.Section[rrset.Authority] {
		if !denies(s) {
			continue
		}
		g := signerOf(s)
		if g == "" || !rrset.Below(name, g) || t.q.Type == rrset.TypeDS && g == name && name != rrset.Root {
			continue
		}
		if zone == "" || len(g) > len(zone) {
			zone = g
		}
	}
	return zone
}
