package iterate

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file answers from what is kept (RFC 1034 §5.3.3 step 1), following aliases as
// far as they are kept, too; synthesize.go has what follows from it for other names.

// Each step of a chain of aliases is looked up anew, by its own rank and life: what was
// once told together need not end together.

// look looks for the task's name in the stores.
func (t *task) look() {
	if t.looked {
		t.looked = false
	} else if t.above == "" && !t.scoped() && t.had() {
		return
	}
	if f, ok := t.failure(); ok && !t.fresh() && t.above == "" {
		t.code, t.text, t.told, t.repeated = f.Code, f.Text, true, true
		t.finish(rcodeServFail)
		return
	}
	t.stage = descending
	t.asideOver(nil)
	t.cut, t.here = nil, visit{}
	t.min = minimiser{full: t.run.conf.Minimise == Off}
}

// failure is that of the name, if it is kept. A question of which all that was found so far was kept, such as an alias,
// may have failed as a whole, beyond that.
func (t *task) failure() (f store.Failure, ok bool) {
	kept := &t.run.conf.Stores.Failures
	if f, ok = kept.Get(t.name, t.q.Type, t.run.now); !ok && t.run.spent.queries == 0 && t.name != t.q.Name {
		f, ok = kept.Get(t.q.Name, t.q.Type, t.run.now)
	}
	return f, ok
}

// had answers from what is kept and what follows from it, in turns as aliases lead, and reports whether the task is
// done by that.
func (t *task) had() bool {
	for !t.kept() {
		if !t.synthesized() {
			return false
		}
	}
	return true
}

// fresh reports whether what is kept of the name is passed over.
func (t *task) fresh() bool { return t.refresh && t.name == t.q.Name || t.doubts() }

// kept follows what is kept, and reports whether the task is done by that.
func (t *task) kept() bool {
	for !t.done && !t.fresh() {
		e := t.entry(t.name, t.q.Type)
		if e == nil {
			return false
		}
		t.due = t.due || e.Left(t.run.now) <= e.TTL/nearEnd(t.q.Type)
		if e.Kind != store.Positive {
			t.deny(e)
			return true
		}
		set := e.Set.WithTTL(e.Left(t.run.now))
		t.proveLeft(e)
		t.use(set)
	}
	return t.done
}

// nearEnd is which part of a TTL is left when an RRset is due: keys are, long before others, as all of a zone waits for
// them.
func nearEnd(typ uint16) uint32 {
	if typ == rrset.TypeDNSKEY {
		return 2
	}
	return 10
}

// use ends the task with an RRset of its name, or follows it if it is an alias. A DNAME above the name is one, whatever
// is asked for.
func (t *task) use(set *rrset.Set) {
	if set.Type == t.q.Type && set.Name == t.name || t.q.Type == rrset.TypeANY {
		t.give(set)
		return
	}
	t.follow(set)
}

// entry is what is kept of a name and type: an RRset, an alias, or a denial.
func (t *task) entry(name string, typ uint16) *store.Entry {
	s, now := &t.run.conf.Stores.RRsets, t.run.now
	if typ == rrset.TypeDS || !aliased(typ) {
		if e := s.Get(name, typ, now); e != nil {
			return e
		}
	}
	switch typ {
	case rrset.TypeDS:
		if e := t.referred(name); e != nil {
			return e
		}
	case rrset.TypeANY:
		for _, any := range []uint16{wire.TypeA, wire.TypeAAAA, wire.TypeMX, wire.TypeTXT, wire.TypeCNAME} {
			if e := s.Positive(name, any, now); e != nil {
				return e
			}
		}
		return nil
	}
	if aliased(typ) {
		find := s.Lookup
		if typ == rrset.TypeNSEC || typ == wire.TypeRRSIG {
			find = s.Get // they stand beside an alias: its owner may have some of its own (RFC 4035 §2.5)
		}
		if e := find(name, typ, now); e != nil {
			return e
		}
		if e := t.dname(name); e != nil {
			return e
		}
	}
	return t.cutOff(name)
}

// Who asks for DS records is a validator: it has a name that the referral was for, so
// the delegation is there most often. Records without signatures are not handed out:
// they would prove nothing, and the parent may have them signed. A referral has no SOA
// record, and clients take a denial without one for a referral (RFC 2308 §2.2) or for
// malformed: unless the SOA record is known, the parent is asked for theirs.

// referred is what a referral said of the DS RRset of a zone, or of its absence: it is
// the parent's own data (RFC 4035 §3.1.4.1), so it need not be asked for again.
func (t *task) referred(name string) *store.Entry {
	d, now := t.run.conf.Stores.Delegations.Get(name, t.run.now), t.run.now
	if d == nil || d.Fixed {
		return nil
	}
	e := &store.Entry{Rank: store.AuthorityData, Zone: rrset.Parent(name), Expires: min(d.Expires, d.Holds)}
	switch {
	case d.DS != nil && d.DS.Sigs > 0:
		e.Kind, e.Set, e.TTL = store.Positive, d.DS, d.DS.TTL
	case d.DS == nil && len(d.Denials) > 0 && d.Denials[0].Sigs > 0:
		e.Kind, e.Denials, e.TTL = store.NoData, d.Denials, d.Denials[0].TTL
		if soa := t.run.conf.SOA; soa != nil {
			e.SOA = soa(d.Denials[0], now)
		}
		if e.SOA != nil {
			e.TTL = min(e.TTL, e.SOA.TTL)
		} else if !t.run.source.Proves() {
			return nil
		}
	default:
		return nil
	}
	e.TTL = min(e.TTL, e.Expires.Left(now)) // it ends with the delegation, however much longer it was meant to live
	if e.Left(now) == 0 {
		return nil
	}
	return e
}

// aliased reports whether a question for a type follows aliases (RFC 1034 §3.6.2, RFC
// 4035 §2.5).
func aliased(typ uint16) bool { return typ != wire.TypeCNAME && typ != rrset.TypeANY }

// dname is a DNAME that is kept above name (RFC 6672 §3.4.1), in the same stub if it is in one.
func (t *task) dname(name string) *store.Entry {
	s, now := &t.run.conf.Stores.RRsets, t.run.now
	for name != rrset.Root && t.run.conf.Stubs[name] == nil {
		name = rrset.Parent(name)
		if e := s.Positive(name, wire.TypeDNAME, now); e != nil {
			return e
		}
	}
	return nil
}

// cutOff is an NXDOMAIN above name that denies name, too (RFC 8020).
func (t *task) cutOff(name string) *store.Entry {
	c := t.run.conf
	if c.Cut == CutOff {
		return nil
	}
	for name != rrset.Root {
		if c.Stubs[name] != nil {
			return nil
		}
		name = rrset.Parent(name)
		if e := c.Stores.RRsets.Denied(name, t.run.now); e != nil && (c.Cut == CutAlways || e.Status == store.Secure) {
			return e
		}
	}
	return nil
}

// deny ends the task with what e denies.
func (t *task) deny(e *store.Entry) {
	if e.SOA != nil {
		t.authority = append(t.authority, e.SOA.WithTTL(e.Left(t.run.now)))
	}
	t.proveLeft(e)
	if e.Kind == store.NXDomain {
		t.finish(rcodeNXDomain)
	} else {
		t.finish(rcodeSuccess)
	}
}

// A reply may prove several wildcards by one denial, and chains of aliases collect the
// denials of each link: who validates needs all of them, and each only once. What they
// deny does not concern the resolver itself.

// prove adds what denies that something is closer than a wildcard, once.
func (t *task) prove(denials []*rrset.Set) {
	for _, d := range denials {
		if find(t.authority, d.Name, d.Type) == nil {
			t.authority = append(t.authority, d)
		}
	}
}

// proveLeft is prove for the denials of an entry, with what is left of their TTLs.
func (t *task) proveLeft(e *store.Entry) {
	for _, d := range e.Denials {
		t.prove([]*rrset.Set{d.WithTTL(min(d.TTL, e.Left(t.run.now)))})
	}
}

// expanded reports whether a wildcard made an RRset: its signature has fewer labels than its owner (RFC
// 4035 §5.3.4). An asterisk in front does not count (RFC 4034 §3.1.3), be it a wildcard's or not.
func expanded(s *rrset.Set) (made bool) {
	n := rrset.Labels(s.Name)
	if rrset.FirstLabel(s.Name) == "*" {
		n--
	}
	s.EachSig(func(rdata string) bool {
		made = len(rdata) > 3 && int(rdata[3]) < n
		return !made
	})
	return made
}

// follow follows an alias from the task's name. With too many of them, or in a circle, that ends the task.
func (t *task) follow(alias *rrset.Set) {
	target := rrset.Target(alias.First())
	t.chain = append(t.chain, alias)
	if alias.Type == wire.TypeDNAME {
		var ok bool
		if target, ok = rrset.Replace(t.name, alias.Name, target); !ok {
			t.finish(rcodeYXDomain)
			return
		}
		t.chain = append(t.chain, rrset.New(t.name, wire.TypeCNAME, alias.TTL, target))
	}
	t.goTo(target)
}

// goTo makes target the task's name, and reports false if that ends the task: with what is said of the name here, if
// nobody else is asked for it.
func (t *task) goTo(target string) bool {
	if t.steps++; t.steps > t.run.conf.Budget.Aliases {
		t.chain = nil
		t.fail(codeOther, "too many aliases")
		return false
	}
	for _, s := range t.chain {
		if s.Name == target && s.Type == wire.TypeCNAME {
			t.chain = nil
			t.fail(codeOther, "alias loop")
			return false
		}
	}
	t.name, t.cut = target, nil
	e := t.run.inside(target, t.q.Type)
	switch {
	case e == nil:
		return true
	case e.Kind == store.Positive:
		t.give(e.Set)
	default:
		e.Expires = t.run.now.After(e.TTL)
		t.deny(e)
	}
	return false
}

// inside is Config.Inside.
func (r *Run) inside(name string, typ uint16) *store.Entry {
	if r.conf.Inside == nil {
		return nil
	}
	return r.conf.Inside(name, typ)
}
