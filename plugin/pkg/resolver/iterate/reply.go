package iterate

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file is what becomes of the end of an exchange (RFC 1034 §5.3.3 step 4): what is
// kept, and where the task goes on.

const (
	formErr        = wire.FormErr
	notImplemented = wire.NotImplemented
	notAuth        = 9
	badVers        = 16
)

// ended notes what came of the question that t has under way.
func (r *Run) ended(t *task, ev Event) {
	was, v := *t.asked, &t.here
	a := &was // it may be asked again meanwhile
	t.asked, t.stage = nil, choosing
	s := a.server
	if ev.From != nil {
		s = ev.From
	}
	r.unsent, v.sent, v.heard = ev.Unsent, v.sent || !ev.Unsent, v.heard || ev.Kind == Replied
	keep := r.now + r.conf.Stores.Servers.Keep()
	switch ev.Kind {
	case TimedOut:
		t.silent(s, a, ev, keep)
	case Failed:
		if ev.From != nil { // else it was not sent
			r.miss(s, ev)
		}
		if ev.Forged && !a.tcp {
			t.send(s, true)
			return
		}
		v.code, v.text = ev.Code, ev.Text
		if a.proof && ev.From != nil {
			t.unproven(s, keep)
			return
		}
		v.try(s.Addr).bad = true
	case Replied:
		r.spent.octets += ev.Reply.Size
		if !ev.Joined {
			if a.edns {
				s.TookOptions(a.options(), keep)
			}
			s.Replied(ev.RTT, ev.Reply.EDNS)
			s.Heard(ev.TCP, ev.RTT, r.now)
		}
		v.quiet = 0
		t.replied(s, a, ev, keep)
	}
}

// silent notes that no reply of s came to a in time. Where a reply may be doubted it is asked again at once.
func (t *task) silent(s *store.Server, a *ask, ev Event, keep store.Time) {
	r, v := t.run, &t.here
	r.miss(s, ev)
	if !ev.Joined {
		if ev.Folded && a.edns { // it did reply
			s.TookOptions(a.options(), keep)
		}
		s.Silent(r.now, a.wait)
		if ev.Doubted == 0 {
			s.Lost(a.tcp, a.wait)
		}
	}
	if !a.tcp {
		v.try(a.server.Addr).silent++
		v.quiet++
	}
	v.timeouts++
	v.code, v.text = codeNoReach, ""
	switch {
	case ev.Doubted > 0 && !a.tcp:
		if ev.Doubted == 1 && ev.Folded { // else it is somebody who knows the port and guesses letters
			s.CaseBlind(keep)
		}
		t.send(s, true)
		t.under.proof = true
	case a.proof:
		t.unproven(s, keep)
	case !v.last && v.timeouts >= 2 && r.conf.Minimise == Relaxed:
		t.whole()
	}
}

// unproven asks a server over UDP that cannot be asked over TCP to show who it is: with what letters and cookies it
// takes, and if these are none, as those do who know neither.
func (t *task) unproven(s *store.Server, keep store.Time) {
	s.LacksTCP(keep)
	t.send(s, false)
}

// Three things are repeated at the same server: a reply that was cut short, over TCP (RFC
// 7766 §5), one of a server that does not know EDNS, without it (RFC 6891 §6.2.2), and one
// of a server that knows EDNS but trips over options, without a cookie: it should ignore
// them (§6.1.2). A time-out says nothing about EDNS.

// replied goes on with a reply of s.
func (t *task) replied(s *store.Server, a *ask, ev Event, keep store.Time) {
	m, v := ev.Reply, &t.here
	switch {
	case m.TC() && !ev.TCP:
		t.send(s, true)
		return
	case a.cookie && m.EDNS && (m.Rcode == formErr || m.Rcode == badVers):
		s.RefusesOptions(keep)
		v.try(s.Addr).n--
		t.send(s, a.tcp)
		return
	case a.edns && !m.EDNS && (m.Rcode == formErr || m.Rcode == notImplemented) || m.Rcode == badVers:
		if s.RefusesEDNS(keep) && a.edns {
			v.try(s.Addr).n--
			t.send(s, a.tcp)
			return
		}
	}
	rd := read(m, t.cut.Zone, a.q, t.run.conf)
	switch {
	case a.subnet != "" && rd.kind == refused && !t.unshown: // it may not like to be told (RFC 7871 §7.1.3)
		t.unshown = true
		t.send(s, a.tcp)
	case !t.tailors(a, m):
		t.next(s, "a reply for another network")
	case rd.kind == refused:
		t.rebuffed(s, rd, keep)
	case rd.kind == referral && rd.leadsNowhere() && v.soft == nil:
		t.next(s, "a referral without the addresses of its servers")
		v.soft, v.softFrom = rd, s // if no other server tells them, they may be known from elsewhere
	case rd.kind == lame:
		t.next(s, "lame server")
		s.SetLame(t.cut.Zone, false, keep)
	case rd.soft && !(rd.speaks() && t.resolversOnly()):
		if t.next(s, "lame server"); v.soft == nil {
			v.soft, v.softFrom = rd, s
		}
		if rd.kind != noData {
			s.SetResolver(t.cut.Zone, keep)
		}
	default:
		if !rd.soft && rd.kind != referral && s.Resolver(t.cut.Zone, t.run.now) { // it serves the zone by now
			s.SetResolver(t.cut.Zone, 0)
		}
		t.take(rd, s)
		return
	}
	t.run.miss(s, ev)
}

// next goes on to the next server; why is what the client is told if there is none.
func (t *task) next(s *store.Server, why string) {
	t.here.try(s.Addr).bad = true
	t.here.code, t.here.text = codeNoReach, fmt.Sprintf("%s: %s", rrset.Text(t.cut.Zone), why)
}

// rebuffed goes on after an error.
func (t *task) rebuffed(s *store.Server, rd *reading, keep store.Time) {
	if !t.here.last && t.run.conf.Minimise == Relaxed {
		t.whole()
		return
	}
	t.next(s, fmt.Sprintf("servers answer rcode %d", rd.rcode))
	if rd.rcode == wire.Refused || rd.rcode == notAuth {
		s.SetLame(t.cut.Zone, rd.rcode == wire.Refused, keep) // it may refuse some types only
	}
}

// take keeps what a reading says, and goes on by it. s is nil for what lay here.
func (t *task) take(rd *reading, s *store.Server) {
	t.server, t.here.soft = netip.AddrPort{}, nil
	if s != nil {
		t.server = s.Addr
	}
	t.trace(rd)
	if rd.kind != referral {
		t.undelegated()
	}
	switch rd.kind {
	case answered:
		t.takeChain(rd)
		t.takeAnswer(rd)
	case aliasOn:
		t.takeAlias(rd)
	case referral:
		if t.above != "" && rrset.Below(rd.ns.Name, t.above) {
			t.referBack(rd)
			return
		}
		d := t.refer(rd)
		if t.says(d) {
			t.back()
			return
		}
		t.moved(d)
	case noData, nxDomain:
		t.takeDenial(rd)
	}
}

// keepSet keeps an RRset of an answer, and returns it as it is told.
func (t *task) keepSet(s *rrset.Set, denials []*rrset.Set) *rrset.Set {
	r := t.run
	ttl := r.ttl(s.TTL)
	for _, d := range denials { // it is kept no longer than what proves it
		ttl = min(ttl, r.ttl(d.TTL))
	}
	s = s.WithTTL(ttl)
	if t.above != "" || t.tailored || s.Type != rrset.TypeDS && r.conf.stubbed(s.Name, t.cut.Zone) {
		// Glue, not for all, or others' to tell.
		return s
	}
	e := &store.Entry{
		Kind: store.Positive, Rank: store.AnswerData, Set: s, Zone: t.cut.Zone, TTL: s.TTL, Expires: r.now.After(s.TTL), Denials: denials,
	}
	r.conf.Stores.RRsets.Put(s.Name, s.Type, e, r.now)
	return s
}

// proof is what of a reply belongs to an RRset of its answer: the denials, if a wildcard made it. Those beside another
// link of a chain of aliases prove nothing for it.
func (rd *reading) proof(s *rrset.Set) []*rrset.Set {
	if !expanded(s) {
		return nil
	}
	return rd.denials
}

// takeChain keeps the aliases of an answer.
func (t *task) takeChain(rd *reading) {
	for i, l := range rd.chain {
		if l.made {
			continue
		}
		denials := rd.proof(l.set)
		t.prove(denials)
		rd.chain[i].set = t.keepSet(l.set, denials)
	}
}

// takeAnswer keeps the RRset that was asked for, and ends the task if it was asked in
// full.
func (t *task) takeAnswer(rd *reading) {
	set := rd.set
	if !rd.made {
		set = t.keepSet(set, rd.proof(set))
	}
	for i, m := range rd.more {
		rd.more[i] = t.keepSet(m, nil)
	}
	if set.Type == wire.TypeNS && set.Name == rrset.Root && t.cut.Zone == rrset.Root && len(rd.chain) == 0 {
		t.prime(set, rd.additional)
	}
	if !t.here.last {
		t.min.took(t.here.q.Name)
		t.stage = descending
		return
	}
	if !t.goAlong(rd) {
		return
	}
	if t.give(append([]*rrset.Set{set}, rd.more...)...) {
		t.prove(rd.denials)
	}
}

// allowed is set without private addresses, nil if none is left.
func (t *task) allowed(set *rrset.Set) *rrset.Set {
	if c := t.run.conf; c.Private != nil && !c.screened(t.q.Name) {
		return set.WithoutAddresses(c.Private)
	}
	return set
}

// screened reports whether answers to questions for a name are screened by somebody else.
func (c *Config) screened(name string) bool {
	return slices.ContainsFunc(c.Screened, func(zone string) bool { return rrset.Below(name, zone) })
}

// give ends the task with RRsets, and reports false if nothing is left of them without private addresses.
func (t *task) give(sets ...*rrset.Set) bool {
	t.finish(rcodeSuccess)
	before := len(t.sets)
	for _, set := range sets {
		left := t.allowed(set)
		if left != set {
			t.code, t.text, t.told = codeFiltered, "private address", true
		}
		if left != nil {
			t.sets = append(t.sets, left)
		}
	}
	return len(t.sets) > before
}

// goAlong follows the aliases of a reading, and reports false if that ends the task.
func (t *task) goAlong(rd *reading) bool {
	for _, l := range rd.chain {
		t.chain = append(t.chain, l.set)
		if l.set.Type == wire.TypeDNAME {
			continue
		}
		cut := t.cut
		if !t.goTo(rrset.Target(l.set.First())) {
			return false
		}
		t.cut = cut
	}
	return true
}

// takeAlias follows aliases. One at a name that is only on the way does not concern the
// full name, unless it is a DNAME.
func (t *task) takeAlias(rd *reading) {
	t.takeChain(rd)
	if rrset.Below(rd.target, t.cut.Zone) { // they may tell that it lies in an unsigned zone below
		t.prove(rd.denials)
	}
	if d := rd.chain[0].set; !t.here.last && d.Type == wire.TypeDNAME { // it may not be kept: its TTL may be 0
		if !aliased(t.q.Type) {
			t.min.full, t.stage = true, descending
		} else if t.follow(d); !t.done {
			t.stage = looking
		}
		return
	}
	if !t.here.last {
		t.min.took(t.here.q.Name)
		t.stage = descending
		return
	}
	if rd.rcode == rcodeYXDomain {
		for _, l := range rd.chain {
			t.chain = append(t.chain, l.set)
		}
		t.finish(rcodeYXDomain)
		return
	}
	if t.goAlong(rd) {
		t.cut, t.stage = nil, looking
	}
}

// A denial of a name on the way is believed only as far as minimisation is strict:
// there are servers that deny empty non-terminals (RFC 8020 §3). So it is kept for that
// name, and the full name is asked all the same. The zone above a stub need not know it:
// when asked for its DS records, it may deny the name.

// takeDenial keeps a denial, and ends the task with it if it is of the full name.
func (t *task) takeDenial(rd *reading) {
	r, q := t.run, t.here.q
	e := &store.Entry{Kind: store.NoData, Rank: store.AnswerData, SOA: rd.soa, Denials: rd.denials, Zone: t.cut.Zone}
	if rd.kind == nxDomain {
		e.Kind, e.Only = store.NXDomain, r.conf.stubbed(q.Name, t.cut.Zone)
	}
	if rd.soa != nil && t.above == "" && !t.tailored { // without, it is passed on and not kept (RFC 2308 §5)
		e.TTL = min(rd.soa.TTL, rrset.SOAMinimum(rd.soa.First()), r.conf.MaxNeg)
		for _, d := range rd.denials {
			e.TTL = min(e.TTL, d.TTL)
		}
		e.TTL = max(e.TTL, min(r.conf.MinTTL, r.conf.MaxNeg))
		e.Expires = r.now.After(e.TTL)
		r.conf.Stores.RRsets.Put(q.Name, q.Type, e, r.now)
	}
	switch {
	case t.here.last, e.Kind == store.NXDomain && (r.conf.Minimise == Strict || r.conf.Cut == CutAlways):
		if e.SOA == nil {
			e.Expires = r.now
		}
		t.deny(e)
	case e.Kind == store.NXDomain:
		t.whole()
	default:
		t.min.took(q.Name)
		t.stage = descending
	}
}
