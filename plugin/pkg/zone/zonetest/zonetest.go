// Package zonetest makes zones and questions for tests, out of a seed: small zones that are full of what is hard to
// answer. There are few labels, so names meet all the time: wildcards, also at the apex, asterisks within names, empty
// non-terminals, cuts with and without glue and DS records, DNAME and CNAME records in chains and circles, into
// each other, below cuts and out of the zone.
//
// The same seed gives the same zone in each release of Go. Start at New.
package zonetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Zone is a zone as a master file.
type Zone struct {
	Origin string   // fully qualified
	Text   string   // with all names in full, and a TTL at each record
	Names  []string // owners, fully qualified
}

// role is what stands at a name.
type role int

const (
	data role = iota
	cut
	alias
	dname
)

type maker struct {
	r      *rand.Rand
	origin string
	roles  map[string]role
	order  []string
	lines  []string
}

// labels are few, and odd.
var labels = []string{"a", "b", "c", "*", "www", "ns", "x-1", "_tcp", "B", `a\.b`, "zz"}

// New is the zone of a seed.
func New(origin string, seed uint64) *Zone {
	m := &maker{r: rand.New(rand.NewPCG(seed, 20261121)), origin: origin, roles: map[string]role{}}
	m.line(origin, "SOA ns1.%s hostmaster.%s %d 7200 3600 1209600 %d", origin, origin, seed%1000+1, 60+seed%600)
	m.line(origin, "NS ns1.%s", origin)
	m.line(origin, "NS ns.example.net.")
	m.line("ns1."+origin, "A 192.0.2.53")
	m.roles["ns1."+origin], m.roles[origin] = data, data
	if m.r.IntN(3) == 0 {
		m.place("*."+origin, data)
	}
	for range 10 + m.r.IntN(30) {
		m.place(m.name(), role([]role{data, data, data, data, cut, alias, alias, dname}[m.r.IntN(8)]))
	}
	for _, n := range m.order {
		m.fill(n)
	}
	return &Zone{Origin: origin, Text: strings.Join(m.lines, "\n") + "\n", Names: append([]string{origin, "ns1." + origin}, m.order...)}
}

func (m *maker) line(owner, format string, args ...any) {
	m.lines = append(m.lines, fmt.Sprintf("%s %d IN %s", owner, 60*(1+len(owner)%7), fmt.Sprintf(format, args...)))
}

// name is a name of one to four labels below the apex.
func (m *maker) name() string {
	n := m.origin
	for range 1 + min(m.r.IntN(4), m.r.IntN(4)) {
		n = labels[m.r.IntN(len(labels))] + "." + n
	}
	return n
}

// place gives a name a role, if what is there already allows it: nothing is below a DNAME, and below a cut
// nothing but addresses.
func (m *maker) place(name string, as role) {
	lower := strings.ToLower(name)
	if _, ok := m.roles[lower]; ok {
		return
	}
	if first, _, _ := strings.Cut(name, "."); first == "*" && (as == cut || as == dname) {
		as = data // NS and DNAME at wildcards mean nothing (RFC 4592 §4.2, §4.4)
	}
	for other, r := range m.roles {
		above, below := strings.HasSuffix(lower, "."+other), strings.HasSuffix(other, "."+lower)
		if above && r == dname || below && as == dname || above && r == cut && as != data || below && as == cut {
			return
		}
	}
	m.roles[lower] = as
	m.order = append(m.order, name)
}

// belowCut reports whether a name stands below a cut.
func (m *maker) belowCut(name string) bool {
	for other, r := range m.roles {
		if r == cut && strings.HasSuffix(strings.ToLower(name), "."+other) {
			return true
		}
	}
	return false
}

// fill writes the records of a name.
func (m *maker) fill(name string) {
	switch m.roles[strings.ToLower(name)] {
	case cut:
		m.line(name, "NS ns.%s", name)
		m.line("ns."+name, "A 192.0.2.%d", m.r.IntN(250))
		if m.r.IntN(2) == 0 {
			m.line(name, "NS %s", m.target())
		}
		if m.r.IntN(2) == 0 {
			m.line(name, "DS %d 13 2 %064x", m.r.IntN(65536), m.r.Uint64())
		}
	case alias:
		m.line(name, "CNAME %s", m.target())
	case dname:
		m.line(name, "DNAME %s", m.target())
		if m.r.IntN(2) == 0 {
			m.line(name, "TXT \"beside a DNAME\"")
		}
	default:
		if m.belowCut(name) {
			m.line(name, "A 192.0.2.%d", m.r.IntN(250))
			return
		}
		for range 1 + m.r.IntN(3) {
			m.record(name)
		}
	}
}

func (m *maker) record(name string) {
	switch m.r.IntN(8) {
	case 0, 1:
		m.line(name, "A 192.0.2.%d", m.r.IntN(250))
	case 2:
		m.line(name, "AAAA 2001:db8::%x", m.r.IntN(65536))
	case 3, 4:
		m.line(name, "TXT \"text %d\"", m.r.IntN(100))
	case 5:
		m.line(name, "MX %d %s", m.r.IntN(100), m.target())
	case 6:
		m.line(name, "SRV 1 2 %d %s", m.r.IntN(1000), m.target())
	case 7:
		m.line(name, "HTTPS 1 %s alpn=h2", m.target())
	}
}

// target is where a record leads: to a name that is there, one that is not, or out of the zone.
func (m *maker) target() string {
	switch n := m.r.IntN(10); {
	case n < 6 && len(m.order) > 0:
		return m.order[m.r.IntN(len(m.order))]
	case n < 8:
		return m.name()
	case n < 9:
		return labels[m.r.IntN(3)] + "." + m.order[m.r.IntN(len(m.order))]
	}
	return "www.example.net."
}

// Question is a question for a zone.
type Question struct{ Name, Type string }

// Types are those that are asked for.
var Types = []string{"A", "A", "AAAA", "TXT", "MX", "NS", "SOA", "CNAME", "DNAME", "DS", "SRV", "HTTPS", "CAA"}

// Questions are n questions out of a seed: for names that are there, above, below and beside them.
func (z *Zone) Questions(seed uint64, n int) []Question {
	r := rand.New(rand.NewPCG(seed, 7))
	all := make([]Question, 0, n)
	for range n {
		name := z.Names[r.IntN(len(z.Names))]
		switch r.IntN(5) {
		case 0:
			name = labels[r.IntN(len(labels))] + "." + name
		case 1:
			name = labels[r.IntN(len(labels))] + "." + labels[r.IntN(len(labels))] + "." + name
		case 2:
			if rest := strings.TrimSuffix(name, z.Origin); strings.Count(rest, ".") > 1 && !strings.Contains(rest, `\`) {
				_, name, _ = strings.Cut(name, ".")
			}
		case 3:
			if strings.HasPrefix(name, "*.") {
				name = []string{"x", "y.z", "ns"}[r.IntN(3)] + name[1:]
			}
		}
		if len(name) > 240 {
			continue
		}
		all = append(all, Question{name, Types[r.IntN(len(Types))]})
	}
	slices.SortFunc(all, func(a, b Question) int { return strings.Compare(a.Name+a.Type, b.Name+b.Type) })
	return slices.Compact(all)
}
