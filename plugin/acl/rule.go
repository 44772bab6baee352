package acl

import (
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// action is what a policy does with a query.
type action uint8

const (
	none   action = iota // no policy fits: as allow, but later rules may say otherwise
	allow                // passes on, whatever later rules say
	block                // REFUSED
	filter               // NOERROR without records
	drop                 // no reply
)

// rule is one directive: policies for some zones.
type rule struct {
	zones    []zone
	index    *wire.Suffixes[int] // of zones by name; nil if there are few
	policies []policy
	asked    bool   // it is also for queries that asked for names in zones
	soaTTL   uint32 // of an SOA record in filter's replies, 0 for none
}

// zone is a zone of a rule.
type zone struct {
	name []byte // lower
	text string // for metrics
	id   int    // counts through the zones of all rules
}

// policy is one line of a rule.
type policy struct {
	action  action
	types   []uint16 // sorted; nil for all
	sources sources
}

// fits reports whether the policy is for a query.
func (p *policy) fits(q *wire.Query) bool {
	if p.types != nil {
		if _, ok := slices.BinarySearch(p.types, q.Type()); !ok {
			return false
		}
	}
	return p.sources.contain(q.Client.Addr())
}

// joined is all, with one policy for each run of them that do the same for the same types: lists that a program made have a line for each network,
// and a set of networks is searched faster than lines are gone through.
func joined(all []policy) (runs []policy) {
	for len(all) > 0 {
		p, n := all[0], 1
		for n < len(all) && all[n].action == p.action && slices.Equal(all[n].types, p.types) {
			n++
		}
		if n > 1 {
			p.sources = unionOf(all[:n])
		}
		runs, all = append(runs, p), all[n:]
	}
	return runs
}

// unionOf is the sources of all together.
func unionOf(all []policy) sources {
	var spans []span
	for i := range all {
		if all[i].sources.all {
			return sources{all: true}
		}
		spans = append(spans, all[i].sources.spans...)
	}
	return union(spans)
}

// verdict is what was decided about a query. Its action is none if it is to be passed on.
type verdict struct {
	action    action
	zone      *zone // that the query is counted under
	rule      *rule
	badSource bool // it is not known who asks
}

// decide asks the rules in their order; in each that is for the query the first policy that fits decides.
func decide(rules []rule, q *wire.Query, as asked) verdict {
	for i := range rules {
		r := &rules[i]
		z := r.zone(q, as)
		if z == nil {
			continue
		}
		if !q.Client.Addr().IsValid() {
			return verdict{action: block, zone: z, rule: r, badSource: true}
		}
		for j := range r.policies {
			p := &r.policies[j]
			if !p.fits(q) {
				continue
			}
			switch {
			case p.action == allow:
				return verdict{}
			case p.action == filter && isUpdate(q): // NOERROR would say that it is done (RFC 2136 §2.2)
				return verdict{action: block, zone: z, rule: r}
			}
			return verdict{action: p.action, zone: z, rule: r}
		}
	}
	return verdict{}
}

// isUpdate reports whether q is an UPDATE message. It is in the message lane alone.
func isUpdate(q *wire.Query) bool { return q.Flags()>>11&0xF == dns.OpcodeUpdate }

// zone is the longest zone of the rule that the query is for, nil if there is none.
func (r *rule) zone(q *wire.Query, as asked) *zone {
	if z := r.longest(q.Lower()); z != nil || !r.asked {
		return z
	}
	var buf [wire.MaxName + 1]byte
	if name, ok := as.appendLower(buf[:0]); ok {
		return r.longest(name)
	}
	return nil
}

// fewZones is how many zones are gone through faster than found in an index.
const fewZones = 8

// longest is the longest zone that a lower name is in.
func (r *rule) longest(name []byte) (found *zone) {
	if r.index != nil {
		if i, ok := r.index.Longest(name); ok {
			return &r.zones[i]
		}
		return nil
	}
	for i := range r.zones {
		if z := &r.zones[i]; wire.Below(name, z.name) && (found == nil || len(z.name) > len(found.name)) {
			found = z
		}
	}
	return found
}

// Codes of extended DNS errors (RFC 8914 §4).
const (
	edeBlocked  = dns.ExtendedErrorCodeBlocked
	edeFiltered = dns.ExtendedErrorCodeFiltered
)

// reason is the extended DNS error that clients with EDNS get.
func (v verdict) reason() uint16 {
	if v.action == filter {
		return edeFiltered
	}
	return edeBlocked
}

// reply makes w what the client of q gets.
func (v verdict) reply(w *wire.Reply, q *wire.Query) {
	if v.action == drop {
		w.Drop()
		return
	}
	w.Begin(q)
	w.SetWriter(pluginName)
	w.AddEDE(v.reason(), "")
	if q.EDNS().Present {
		w.CountOPT()
	}
	if v.action == block {
		w.SetRcode(wire.Refused)
		return
	}
	if ttl := v.rule.soaTTL; ttl > 0 { // how long the denial may be kept (RFC 2308 §2.2)
		soa := wire.SOA{MName: v.zone.name, RName: wire.Root, Serial: 1, Refresh: ttl, Retry: ttl, Expire: ttl, Minimum: ttl}
		w.SOA(wire.Authority, v.zone.name, ttl, &soa)
	}
}
