package zone

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// model is a zone as plainly as RFC 1034 §4.3.2 can be written: records by names and types, looked through label by
// label. It is what tests compare an Answerer with.
type model struct {
	origin string
	sets   map[string]map[uint16][]dns.RR // by lower names
	exists map[string]bool                // names with data, and those above them (RFC 4592 §2.2.2)
}

func newModel(origin, text string) *model {
	m := &model{origin: origin, sets: map[string]map[uint16][]dns.RR{}, exists: map[string]bool{}}
	zp := dns.NewZoneParser(strings.NewReader("$TTL 300\n"+text), origin, "db")
	for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
		name := strings.ToLower(rr.Header().Name)
		if m.sets[name] == nil {
			m.sets[name] = map[uint16][]dns.RR{}
		}
		m.sets[name][rr.Header().Rrtype] = append(m.sets[name][rr.Header().Rrtype], rr)
		for ; name != origin; name = above(name) {
			m.exists[name] = true
		}
		m.exists[origin] = true
	}
	return m
}

// above is a name without its first label.
func above(name string) string {
	if next, end := dns.NextLabel(name, 0); !end {
		return name[next:]
	}
	return "."
}

// ancestors is the names from just below the apex down to a name; the apex itself is first.
func (m *model) ancestors(name string) (all []string) {
	for ; name != m.origin; name = above(name) {
		all = append(all, name)
	}
	all = append(all, m.origin)
	slices.Reverse(all)
	return all
}

// said is what a reply says: a set of lines for each section.
type said struct {
	rcode  int
	aa     bool
	answer map[string]bool
	ns, ar map[string]bool
}

func (s said) String() string {
	out := fmt.Sprintf("%s aa %v\n", dns.RcodeToString[s.rcode], s.aa)
	for i, lines := range []map[string]bool{s.answer, s.ns, s.ar} {
		for _, l := range slices.Sorted(maps.Keys(lines)) {
			out += []string{"an ", "ns ", "ar "}[i] + l + "\n"
		}
	}
	return out
}

// line is a record as one line, names in lower case; owner takes the place of its own if it is given.
func line(rr dns.RR, owner string) string {
	if owner != "" {
		rr = dns.Copy(rr)
		rr.Header().Name = owner
	}
	return strings.ToLower(strings.Join(strings.Fields(rr.String()), " "))
}

func addAll(to map[string]bool, rrs []dns.RR, owner string) {
	for _, rr := range rrs {
		to[line(rr, owner)] = true
	}
}

// ask answers a question for a name in the zone, following aliases as far as the zone has something at their ends.
func (m *model) ask(qname string, qtype uint16) said {
	s := said{aa: true, answer: map[string]bool{}, ns: map[string]bool{}, ar: map[string]bool{}}
	name, seen := strings.ToLower(qname), []string{}
	var hits []dns.RR
	for {
		target, rrs, r := m.look(&s, name, qtype)
		hits = rrs
		if r == follow {
			seen = append(seen, name)
			switch {
			case !dns.IsSubDomain(m.origin, target), slices.Contains(seen, target):
				r = Hit
			case len(seen) == maxAliases:
				r = Broken
			default:
				name = target
				continue
			}
		}
		m.end(&s, r, name, qtype, hits)
		return s
	}
}

// look is one look at a name: steps 3a to 3c.
func (m *model) look(s *said, name string, qtype uint16) (target string, hits []dns.RR, r Result) {
	for _, n := range m.ancestors(name) {
		sets := m.sets[n]
		if ns := sets[dns.TypeNS]; ns != nil && n != m.origin && (n != name || qtype != dns.TypeDS) {
			addAll(s.ns, ns, "")
			s.aa = len(s.answer) > 0
			return "", ns, Referral
		}
		if dname := sets[dns.TypeDNAME]; dname != nil && n != name {
			addAll(s.answer, dname, "")
			target = strings.TrimSuffix(name, n) + strings.ToLower(dname[0].(*dns.DNAME).Target)
			if b, err := wire.AppendName(nil, target); err != nil || len(b) > wire.MaxName {
				return "", nil, TooLong
			}
			if target == name {
				return "", nil, Broken
			}
			s.answer[fmt.Sprintf("%s %d in cname %s", name, dname[0].Header().Ttl, target)] = true
			if qtype == dns.TypeCNAME || qtype == dns.TypeANY {
				return "", nil, Hit
			}
			return target, nil, follow
		}
	}
	at := name
	if !m.exists[name] {
		encloser := above(name)
		for !m.exists[encloser] {
			encloser = above(encloser)
		}
		if at = "*." + encloser; !m.exists[at] {
			return "", nil, NXDomain
		}
	}
	sets := m.sets[at]
	if cname := sets[dns.TypeCNAME]; cname != nil && qtype != dns.TypeCNAME && qtype != dns.TypeANY {
		addAll(s.answer, cname, name)
		return strings.ToLower(cname[0].(*dns.CNAME).Target), nil, follow
	}
	for typ, rrs := range sets {
		if typ == qtype || qtype == dns.TypeANY {
			addAll(s.answer, rrs, name)
			hits = append(hits, rrs...)
		}
	}
	if hits == nil {
		return "", nil, NoData
	}
	return "", hits, Hit
}

// end is the authority and additional sections, of which RFC 1034 leaves some to the server: answers have the apex' NS
// records, but for those that are made of them.
func (m *model) end(s *said, r Result, name string, qtype uint16, hits []dns.RR) {
	apex := m.sets[m.origin]
	switch r {
	case Hit:
		if name != m.origin || qtype != dns.TypeNS && qtype != dns.TypeANY {
			addAll(s.ns, apex[dns.TypeNS], "")
		}
		if qtype != dns.TypeANY && (qtype != dns.TypeNS || name == m.origin) {
			m.addresses(s, hits)
		}
	case NXDomain, NoData: // RFC 2308 §3
		if r == NXDomain {
			s.rcode = dns.RcodeNameError
		}
		soa := dns.Copy(apex[dns.TypeSOA][0]).(*dns.SOA)
		soa.Hdr.Ttl = min(soa.Hdr.Ttl, soa.Minttl)
		s.ns[line(soa, "")] = true
	case Referral:
		m.addresses(s, hits)
	case TooLong:
		s.rcode = dns.RcodeYXDomain
	case Broken:
		s.rcode = dns.RcodeServerFailure
	}
}

// addresses is step 6: what the zone has at the names that records lead to.
func (m *model) addresses(s *said, rrs []dns.RR) {
	for _, rr := range rrs {
		target := ""
		switch rr := rr.(type) {
		case *dns.NS:
			target = rr.Ns
		case *dns.MX:
			target = rr.Mx
		case *dns.SRV:
			target = rr.Target
		case *dns.HTTPS:
			target = rr.Target
		}
		sets := m.sets[strings.ToLower(target)]
		addAll(s.ar, sets[dns.TypeA], "")
		addAll(s.ar, sets[dns.TypeAAAA], "")
	}
}
