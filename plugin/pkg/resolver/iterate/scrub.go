package iterate

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file reads a reply: what of it is believed (RFC 2181 §5.4.1), and what it says
// (RFC 1034 §5.3.3 step 4). All that is not asked for is left out here, before anything
// is kept: records of other zones, NS records beside an answer, addresses that no
// referral needs.

// readingKind is what a reply says.
type readingKind uint8

const (
	answered readingKind = iota // here is the RRset, perhaps behind aliases
	aliasOn                     // an alias, which leads on
	referral                    // ask those
	noData                      // the name exists, the type does not
	nxDomain                    // the name does not exist
	lame                        // the server does not serve the zone
	refused                     // it does not answer this
)

// reading is what is believed of a reply.
type reading struct {
	kind    readingKind
	soft    bool // it is no authority that speaks
	chain   []link
	set     *rrset.Set // answered
	made    bool       // set is computed, and never kept
	more    []*rrset.Set
	target  string // where the aliases lead
	ns      *rrset.Set
	ds      *rrset.Set
	soa     *rrset.Set
	denials []*rrset.Set

	additional []*rrset.Set
	rcode      int
}

// link is an alias of a chain. A CNAME that a DNAME makes is computed, and never kept.
type link struct {
	set  *rrset.Set
	made bool
}

// The kinds stand in the order in which a reply is tried for them: an answer counts
// whatever else the packet holds; a SOA makes a denial, even beside NS records; NS
// records further down a referral, all others a lame server. AA is asked for only where
// nothing else speaks for the server, as there are authorities that forget it.

// read reads what a server of zone replied to q.
func read(m *rrset.Message, zone string, q Question, c *Config) *reading {
	rd := &reading{rcode: m.Rcode, additional: m.Section[rrset.Additional], soft: m.RA() && !m.AA()}
	switch m.Rcode {
	case rcodeSuccess, rcodeNXDomain:
	case rcodeYXDomain:
		if rd.answer(m, zone, q, c); len(rd.chain) > 0 {
			return rd
		}
		rd.kind = refused
		return rd
	default:
		rd.kind = refused
		return rd
	}
	rd.authority(m, zone, q)
	if rd.answer(m, zone, q, c) {
		return rd
	}
	switch {
	case m.Rcode == rcodeNXDomain:
		rd.kind = nxDomain
	case rd.soa != nil:
		rd.kind = noData
	case rd.ns != nil:
		rd.kind, rd.soft = referral, false
	case q.Type == rrset.TypeDS && rd.referredDS(m, zone, q.Name):
		rd.soft = false
	case rd.otherNS(m, zone):
		rd.kind = lame
	case m.AA():
		rd.kind = noData
	default:
		rd.kind, rd.soft = noData, true
	}
	return rd
}

// answer reads the answer section: aliases from q's name in their order, as far as they
// are in the zone and in no stub below, and the RRset that they lead to. It reports
// false if there is nothing of that.
func (rd *reading) answer(m *rrset.Message, zone string, q Question, c *Config) bool {
	sets := m.Section[rrset.Answer]
	name := q.Name
	for len(rd.chain) <= 2*(c.Budget.Aliases+1) && rrset.Below(name, zone) && (len(rd.chain) == 0 || !c.stubbed(name, zone)) {
		switch {
		case !aliased(q.Type) && rd.redirected(sets, name, zone):
			if rd.set == nil {
				return true
			}
		case q.Type == rrset.TypeANY:
			rd.any(sets, name)
		default:
			rd.set = find(sets, name, q.Type)
			if rd.set != nil && leadsOut(rd.set, zone) {
				rd.set = nil
			}
		}
		if rd.set != nil {
			rd.kind = answered
			return true
		}
		next, ok := rd.alias(sets, name, zone, q.Type)
		if !ok {
			break
		}
		name = next
	}
	if len(rd.chain) == 0 {
		return false
	}
	rd.kind, rd.target = aliasOn, name
	return true
}

// stubbed reports whether a stub stands between a zone and a name: its servers tell of the name, whatever those of the
// zone say.
func (c *Config) stubbed(name, zone string) bool {
	if len(c.Stubs) == 0 || !rrset.Below(name, zone) {
		return false
	}
	for ; len(name) > len(zone); name = rrset.Parent(name) {
		if c.Stubs[name] != nil {
			return true
		}
	}
	return false
}

// any takes all RRsets of name.
func (rd *reading) any(sets []*rrset.Set, name string) {
	for _, s := range sets {
		if s.Name != name {
			continue
		}
		if rd.set == nil {
			rd.set = s
		} else {
			rd.more = append(rd.more, s)
		}
	}
}

// redirected takes the DNAME above name as the answer to who asks for aliases themselves, with
// the CNAME that it makes of name (RFC 6672 §3.1). It reports false if there is none. Without
// the CNAME the name would be too long.
func (rd *reading) redirected(sets []*rrset.Set, name, zone string) bool {
	_, found, ok := rd.dname(sets, name, zone)
	if !found {
		return false
	}
	rd.kind = aliasOn
	if ok {
		last := len(rd.chain) - 1
		rd.set, rd.made, rd.chain = rd.chain[last].set, true, rd.chain[:last]
	}
	return true
}

// dname takes the DNAME above name, and the CNAME that it makes of name; ok is false if what
// that leads to is too long. A CNAME beside a DNAME is not looked at.
func (rd *reading) dname(sets []*rrset.Set, name, zone string) (target string, found, ok bool) {
	for above := name; above != zone && above != rrset.Root; {
		above = rrset.Parent(above)
		d := find(sets, above, wire.TypeDNAME)
		if d == nil || !rrset.Below(above, zone) {
			continue
		}
		rd.chain = append(rd.chain, link{set: d})
		if target, ok = rrset.Replace(name, above, rrset.Target(d.First())); !ok {
			rd.rcode = rcodeYXDomain
			return "", true, false
		}
		rd.chain = append(rd.chain, link{rrset.New(name, wire.TypeCNAME, d.TTL, target), true})
		return target, true, true
	}
	return "", false, false
}

// alias takes the alias at name, or the DNAME above it, and tells where it leads.
func (rd *reading) alias(sets []*rrset.Set, name, zone string, typ uint16) (target string, ok bool) {
	if !aliased(typ) {
		return "", false
	}
	if target, found, ok := rd.dname(sets, name, zone); found {
		return target, ok
	}
	c := find(sets, name, wire.TypeCNAME)
	if c == nil {
		return "", false
	}
	rd.chain = append(rd.chain, link{set: c})
	return rrset.Target(c.First()), true
}

func find(sets []*rrset.Set, name string, typ uint16) *rrset.Set {
	for _, s := range sets {
		if s.Type == typ && s.Name == name {
			return s
		}
	}
	return nil
}

// authority reads the authority section: the NS set of one cut between zone and q's
// name, with what is said of its DS, or the SOA of a denial. Beside an answer, NS
// records are nothing (CVE-2025-11411).
func (rd *reading) authority(m *rrset.Message, zone string, q Question) {
	for _, s := range m.Section[rrset.Authority] {
		if !rrset.Below(s.Name, zone) {
			continue
		}
		switch s.Type {
		case wire.TypeSOA:
			if rd.soa == nil && rrset.Below(q.Name, s.Name) {
				rd.soa = s
			}
		case wire.TypeNS:
			if rd.ns == nil && len(s.Name) > len(zone) && rrset.Below(q.Name, s.Name) && (q.Type != rrset.TypeDS || s.Name != q.Name) {
				rd.ns = s
			}
		case rrset.TypeNSEC, rrset.TypeNSEC3:
			if leadsOut(s, zone) {
				continue
			}
			rd.denials = append(rd.denials, s)
		}
	}
	if rd.ns != nil {
		rd.ds = find(m.Section[rrset.Authority], rd.ns.Name, rrset.TypeDS)
	}
}

// Some servers refer a question for DS records to the zone below, with just these records. That zone does not have
// them, so this is the answer (RFC 4035 §3.1.4.1).

// referredDS reads such a referral, and reports false if it is none or tells nothing of them.
func (rd *reading) referredDS(m *rrset.Message, zone, name string) bool {
	sets := m.Section[rrset.Authority]
	if len(name) <= len(zone) || find(sets, name, wire.TypeNS) == nil {
		return false
	}
	if rd.set = find(sets, name, rrset.TypeDS); rd.set != nil {
		rd.kind = answered
		return true
	}
	rd.kind = noData
	return len(rd.denials) > 0
}

// otherNS reports whether the authority section refers upward or sideways, or without AA to the zone itself. An
// authority that denies may name the zone's own servers, but none of another zone.
func (rd *reading) otherNS(m *rrset.Message, zone string) bool {
	for _, s := range m.Section[rrset.Authority] {
		if s.Type == wire.TypeNS && (!m.AA() || !rrset.Below(s.Name, zone)) {
			return true
		}
	}
	return false
}
