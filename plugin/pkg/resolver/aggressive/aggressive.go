// Package aggressive answers names by denials and wildcards that were validated for other names (RFC 8198).
//
//	validator ──Learn──▶ zone ──▶ NSEC by canonical order, NSEC3 by hash, SOA (aggressive.go), wildcards (wildcard.go)
//	                                   │
//	a name that is asked ──Answer──▶ NXDOMAIN, NODATA, or what a wildcard stands for, with the records that prove it
//
// What it answers holds the proof in it, so a validator above can check it as any other reply; it need not if all of it
// follows from what it has found itself (By). It has no clock; any number of goroutines may use a Store. DS records are
// never denied: they lie at the parent. Start at Store.Answer.
package aggressive

import (
	"sort"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Bounds: what all records may take, and how many of one zone are kept, so that adding one stays cheap.
const (
	mostInZone     = 4096
	mostIterations = 50
	mostHashes     = 16 // for one name
)

// Store is the denials and wildcards of zones.
type Store struct {
	most  int  // octets
	nsec3 bool // NSEC3 is used, too

	mu     sync.RWMutex // guards what follows
	zones  map[string]*zone
	octets int
}

// A zone's lists are slices and no trees: with so many records at most, moving them in memory costs less than a network
// round trip by far, and looking for one costs a binary search.

// zone is what is known of one zone; both lists are in order.
type zone struct {
	soa    record
	spans  []span
	spans3 []span3
	wilds  map[wildKey]record
	octets int
}

// record is an RRset, when it ends, and by whom it was found to be secure.
type record struct {
	set   *rrset.Set
	until store.Time
	by    any
}

// span is an NSEC record; order is what it is sorted by, see the function order, and end that of the next name, empty
// for the last record of the zone.
type span struct {
	validate.Span
	record
	order, end string
}

func newSpan(p validate.Span, r record, apex string) span {
	s := span{Span: p, record: r, order: order(p.Owner())}
	if p.Next() != apex {
		s.end = order(p.Next())
	}
	return s
}

// covers reports whether a name of the zone, by its order, lies between owner and next name, and so does not exist, but
// perhaps as an empty non-terminal. It has to stand behind the owner.
func (s *span) covers(name string, order []byte) bool {
	return (s.end == "" || string(order) < s.end) && !(s.Leads() && rrset.Below(name, s.Owner()))
}

// span3 is an NSEC3 record, which is sorted by its hash. All of a zone have equal parameters.
type span3 struct {
	validate.Span3
	record
}

// New is a Store of so many octets; nsec3 has it use NSEC3 beside NSEC.
func New(octets int, nsec3 bool) *Store {
	return &Store{most: octets, nsec3: nsec3, zones: map[string]*zone{}}
}

// What is learned has to be secure: this package verifies nothing. A record that a wildcard made, or that leads out of
// the zone, is left out all the same, as are NSEC3 records with opt-out, which deny nothing (RFC 8198 §5.2, §5.3).

// Learn keeps an RRset of a zone until then, if it is one that denies, the zone's SOA, or a wildcard. By has found it
// to be secure.
func (s *Store) Learn(by any, apex string, set *rrset.Set, until store.Time) {
	r := record{set, until, by}
	switch set.Type {
	case wire.TypeSOA:
		if set.Name == apex {
			s.in(apex, func(z *zone) { z.soa = r })
		}
	case rrset.TypeNSEC:
		if p, ok := validate.ParseSpan(set, apex); ok {
			s.in(apex, func(z *zone) { z.add(newSpan(p, r, apex)) })
		}
	case rrset.TypeNSEC3:
		if p, ok := validate.ParseSpan3(set, apex, mostIterations); ok && s.nsec3 {
			s.in(apex, func(z *zone) { z.add3(span3{p, r}) })
		}
	default:
		if k, wild := wildcardOf(set); wild != nil && rrset.Below(k.encloser, apex) {
			s.in(apex, func(z *zone) { z.addWild(k, record{wild, until, by}) })
		}
	}
}

// Which zone is forgotten when all take too much is left to chance: who floods the store with zones of their own can
// have others forgotten, but not choose which, and that costs an upstream query and no more.

// in changes a zone, and forgets others if all take too much.
func (s *Store) in(apex string, change func(*zone)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	z := s.zones[apex]
	if z == nil {
		z = &zone{octets: 200 + len(apex)}
		s.zones[apex] = z
		s.octets += z.octets
	}
	before := z.octets
	change(z)
	s.octets += z.octets - before
	for name, other := range s.zones {
		if s.octets <= s.most {
			break
		}
		s.octets -= other.octets
		delete(s.zones, name)
	}
}

const spanOctets = 250 // beside the RRset

// add adds an NSEC record, in place of an older one of the same owner; of too many, one far from it goes.
func (z *zone) add(p span) {
	i := sort.Search(len(z.spans), func(i int) bool { return z.spans[i].order >= p.order })
	z.octets += p.set.Size() + spanOctets
	if i < len(z.spans) && z.spans[i].order == p.order {
		z.octets -= z.spans[i].set.Size() + spanOctets
		z.spans[i] = p
		return
	}
	if len(z.spans) == mostInZone {
		at := (i + mostInZone/2) % mostInZone // any other
		z.octets -= z.spans[at].set.Size() + spanOctets
		z.spans = append(z.spans[:at], z.spans[at+1:]...)
		if at < i {
			i--
		}
	}
	z.spans = append(z.spans, span{})
	copy(z.spans[i+1:], z.spans[i:])
	z.spans[i] = p
}

// A chain with other parameters replaces the one that is kept: the zone was signed anew.

// add3 is add for NSEC3.
func (z *zone) add3(p span3) {
	if len(z.spans3) > 0 && !z.spans3[0].Same(&p.Span3) || len(z.spans3) == mostInZone {
		for i := range z.spans3 {
			z.octets -= z.spans3[i].set.Size() + spanOctets
		}
		z.spans3 = nil
	}
	i := sort.Search(len(z.spans3), func(i int) bool { return z.spans3[i].Owner() >= p.Owner() })
	z.octets += p.set.Size() + spanOctets
	if i < len(z.spans3) && z.spans3[i].Owner() == p.Owner() {
		z.octets -= z.spans3[i].set.Size() + spanOctets
		z.spans3[i] = p
		return
	}
	z.spans3 = append(z.spans3, span3{})
	copy(z.spans3[i+1:], z.spans3[i:])
	z.spans3[i] = p
}

// Labels are compared as octets, unsigned, and a name stands before those below it. So each label ends with a zero, and
// zeros in labels are written as a one and another octet, as are ones.

// order is a string by whose order names stand in canonical order (RFC 4034 §6.1): labels from the right, each with an
// end that is less than any octet.
func order(name string) string { return string(appendOrder(nil, name)) }

// orderRoom is what an order takes at most, as names with the octets 0 and 1 in them are rare: more is allocated.
const orderRoom = wire.MaxName

func appendOrder(b []byte, name string) []byte {
	var at [128]uint8
	n := 0
	for i := 0; i < len(name) && name[i] != 0 && n < len(at); i += int(name[i]) + 1 {
		at[n] = uint8(i)
		n++
	}
	for n--; n >= 0; n-- {
		i := int(at[n])
		for _, c := range []byte(name[i+1 : i+1+int(name[i])]) {
			if c <= 1 {
				b = append(b, 1)
				c++
			}
			b = append(b, c)
		}
		b = append(b, 0)
	}
	return b
}

// What is forgotten is so for names above and below: a zone cut may lie between, and who flushes a name wants it asked
// for anew, not denied by the zone that it was in.

// Total is the number of zones, and the octets they take.
func (s *Store) Total() (zones, octets int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.zones), s.octets
}

// Forget forgets the zones at or below a name, and that it lies in.
func (s *Store) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for apex, z := range s.zones {
		if rrset.Below(apex, name) || rrset.Below(name, apex) {
			s.octets -= z.octets
			delete(s.zones, apex)
		}
	}
}
