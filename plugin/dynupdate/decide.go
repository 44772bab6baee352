package dynupdate

import (
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// decision is one UPDATE on its way through RFC 2136 §3: prerequisites, permissions, prescan, updates. It changes
// nothing but c.
type decision struct {
	*message
	d      *DynUpdate
	c      *zone.Change
	now    uint32 // seconds since 1970
	soa    bool   // the update gave the zone a serial
	counts map[string]int
}

// run decides. ok reports whether the change is to be made.
func (u *decision) run() (r result, ok bool) {
	for _, step := range [...]func() (result, bool){u.prerequisites, u.permissions, u.prescan} {
		if r, ok := step(); !ok {
			return r, false
		}
	}
	for _, rec := range u.updates {
		if err := u.apply(rec); err != nil {
			return faulty(dns.RcodeFormatError, rec), false
		}
	}
	u.orphans()
	if r, ok := u.limits(); !ok {
		return r, false
	}
	if !u.c.Changes() {
		return result{}, false
	}
	if !u.soa {
		if err := raise(u.c, u.d.origin, u.d.serial, u.now); err != nil {
			return result{answer: answer{rcode: dns.RcodeServerFailure}, err: err}, false
		}
	}
	return result{}, true
}

// exact is an RRset that has to be as a prerequisite says.
type exact struct {
	rec    record
	rdatas [][]byte
}

// prerequisites is RFC 2136 §3.2.
func (u *decision) prerequisites() (r result, ok bool) {
	var sets []exact
	for _, p := range u.prereqs {
		if p.err != nil || p.ttl != 0 || !p.wellFormed() {
			return faulty(dns.RcodeFormatError, p), false
		}
		if !wire.Below(p.owner, u.d.origin) {
			return faulty(dns.RcodeNotZone, p), false
		}
		if p.typ != dns.TypeANY && slices.Contains(refusedTypes, p.typ) && !u.d.policy.admits(p.typ, "", nil) {
			return faulty(dns.RcodeNotImplemented, p), false
		}
		s := u.c.At(p.owner)
		there := s.Len(p.typ) > 0
		if p.typ == dns.TypeANY {
			there = !s.Empty()
		}
		switch {
		case p.class == dns.ClassINET:
			sets = gather(sets, p)
		case p.class == dns.ClassANY && !there && p.typ == dns.TypeANY:
			return faulty(dns.RcodeNameError, p), false
		case p.class == dns.ClassANY && !there:
			return faulty(dns.RcodeNXRrset, p), false
		case p.class == dns.ClassNONE && there && p.typ == dns.TypeANY:
			return faulty(dns.RcodeYXDomain, p), false
		case p.class == dns.ClassNONE && there:
			return faulty(dns.RcodeYXRrset, p), false
		}
	}
	for _, e := range sets {
		if !e.holds(u.c) {
			return faulty(dns.RcodeNXRrset, e.rec), false
		}
	}
	return r, true
}

// wellFormed reports whether a prerequisite is of one of the five forms.
func (p *record) wellFormed() bool {
	switch p.class {
	case dns.ClassANY, dns.ClassNONE:
		return len(p.rdata) == 0 && (p.typ == dns.TypeANY || !wire.IsMeta(p.typ))
	case dns.ClassINET:
		return !wire.IsMeta(p.typ) && p.hasData()
	}
	return false
}

// hasData reports whether a record has data, or is of a type that may have none.
func (p *record) hasData() bool { return len(p.rdata) > 0 || wire.MayBeEmpty(p.typ) }

// gather adds a record to the set that it is of.
func gather(sets []exact, p record) []exact {
	for i := range sets {
		if e := &sets[i]; e.rec.typ == p.typ && string(e.rec.owner) == string(p.owner) {
			e.rdatas = append(e.rdatas, p.rdata)
			return sets
		}
	}
	return append(sets, exact{p, [][]byte{p.rdata}})
}

// holds reports whether the zone has exactly these records, whatever their order and TTLs (RFC 2136 §3.2.3).
func (e *exact) holds(c *zone.Change) bool {
	s := c.At(e.rec.owner)
	different := 0
	for i, rdata := range e.rdatas {
		if !s.Has(e.rec.typ, rdata) {
			return false
		}
		if !slices.ContainsFunc(e.rdatas[:i], func(o []byte) bool { return zone.SameData(e.rec.typ, o, rdata) }) {
			different++
		}
	}
	return different == s.Len(e.rec.typ)
}

// permissions: every record has to be one that the key may change.
func (u *decision) permissions() (r result, ok bool) {
	for _, rec := range u.updates {
		goes := func(typ uint16) bool {
			if !wire.Below(rec.owner, u.d.origin) {
				return false // the prescan will tell
			}
			s := u.c.At(rec.owner)
			return s.Len(typ) > 0 && !u.stays(s, typ)
		}
		if rec.err == nil && !u.d.policy.allows(u.by.Key, rec.owner, rec.typ, goes) {
			return refused("no permission for %s", rec), false
		}
	}
	return r, true
}

// prescan is RFC 2136 §3.4.1.
func (u *decision) prescan() (r result, ok bool) {
	for _, rec := range u.updates {
		apex := len(rec.owner) == len(u.d.origin)
		switch {
		case rec.err != nil:
			return faulty(dns.RcodeFormatError, rec), false
		case !wire.Below(rec.owner, u.d.origin):
			return faulty(dns.RcodeNotZone, rec), false
		case !rec.isUpdate():
			return faulty(dns.RcodeFormatError, rec), false
		case rec.class == dns.ClassINET && rec.typ == dns.TypeSOA && (!apex || serialOf(rec.rdata) == 0):
			return faulty(dns.RcodeFormatError, rec), false
		case rec.typ != dns.TypeANY && !u.d.policy.takes(rec.typ, apex, u.by.Key, rec.owner):
			return faulty(dns.RcodeNotImplemented, rec), false
		}
	}
	return r, true
}

// isUpdate reports whether an update record is of one of the four forms of RFC 2136 §2.5.
func (p *record) isUpdate() bool {
	switch p.class {
	case dns.ClassINET:
		return !wire.IsMeta(p.typ) && p.hasData()
	case dns.ClassANY:
		return p.ttl == 0 && len(p.rdata) == 0 && (p.typ == dns.TypeANY || !wire.IsMeta(p.typ))
	case dns.ClassNONE:
		return p.ttl == 0 && !wire.IsMeta(p.typ)
	}
	return false
}

// limits of an RRset and of a name, whatever the directive says.
const (
	maxSet   = 1000 // records
	maxTypes = 100
)

// limits looks at the names that were changed.
func (u *decision) limits() (r result, ok bool) {
	for _, rec := range u.updates {
		s := u.c.At(rec.owner)
		if n := s.Len(rec.typ); n > maxSet {
			return refused("%s would have %d records, at most %d are allowed", rec, n, maxSet), false
		}
		if n := len(s.Types()); n > maxTypes {
			return refused("%s would have %d types, at most %d are allowed", wire.Text(rec.owner), n, maxTypes), false
		}
	}
	return r, true
}
