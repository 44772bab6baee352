package aggressive

import (
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const apex = "example."

// set is an RRset that looks signed: with so many labels in its signature.
func set(t testing.TB, labels int, text string) *rrset.Set {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1024)
	n, err := dns.PackRR(rr, b, 0, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	name := rrset.MustName(rr.Header().Name)
	s := rrset.New(name, rr.Header().Rrtype, rr.Header().Ttl, string(b[len(name)+10:n]))
	if labels < 0 {
		labels = rrset.Labels(name)
		if rrset.FirstLabel(name) == "*" {
			labels--
		}
	}
	head := make([]byte, 18)
	head[1], head[2], head[3] = byte(s.Type), 13, byte(labels)
	return rrset.Signed(s, string(head)+rrset.MustName(apex)+"signature")
}

func learn(t testing.TB, s *Store, texts ...string) {
	t.Helper()
	for _, x := range append(texts, "example. 300 IN SOA a. b. 1 2 3 4 60") {
		s.Learn(rrset.MustName(apex), set(t, -1, x), store.Time(0).After(300))
	}
}

func TestDeny(t *testing.T) {
	s := New(1<<20, false)
	learn(t, s, "example. 300 IN NSEC a.example. SOA NS RRSIG NSEC DNSKEY", "a.example. 300 IN NSEC x.c.example. A RRSIG NSEC",
		"x.c.example. 300 IN NSEC cut.example. A RRSIG NSEC", "cut.example. 300 IN NSEC dn.example. NS RRSIG NSEC",
		"dn.example. 300 IN NSEC *.w.example. DNAME RRSIG NSEC", "*.w.example. 300 IN NSEC w2.example. TXT RRSIG NSEC")
	for _, c := range []struct {
		name string
		typ  uint16
		want string // rcode and number of records, empty for nothing
	}{
		{"b.example.", dns.TypeA, "3 2"}, {"y.b.example.", dns.TypeA, "3 2"}, {"a.example.", dns.TypeMX, "0 1"}, {"a.example.", dns.TypeA, ""},
		{"c.example.", dns.TypeA, "0 1"}, {"x.a.example.", dns.TypeA, "3 1"}, {"b.example.", dns.TypeDS, ""}, {"b.example.", dns.TypeANY, ""},
		{"cut.example.", dns.TypeA, ""}, {"x.cut.example.", dns.TypeA, ""}, {"x.dn.example.", dns.TypeA, ""}, {"dn.example.", dns.TypeA, ""},
		{"q.w.example.", dns.TypeA, "0 1"}, {"q.w.example.", dns.TypeTXT, ""}, {"z.example.", dns.TypeA, ""}, {"b.other.", dns.TypeA, ""},
	} {
		got, e := "", s.Deny(rrset.MustName(c.name), c.typ, 1)
		if e != nil {
			got = fmt.Sprintf("%d %d", map[store.Kind]int{store.NXDomain: 3}[e.Kind], len(e.Denials))
			if e.SOA == nil || e.TTL > 60 {
				t.Errorf("%s: SOA %v, TTL %d", c.name, e.SOA, e.TTL)
			}
		}
		if got != c.want {
			t.Errorf("%s %d: %q, want %q", c.name, c.typ, got, c.want)
		}
	}
	s.Learn(rrset.MustName(apex), set(t, -1, "example. 900 IN SOA a. b. 1 2 3 4 60"), store.Time(0).After(900))
	if e := s.Deny(rrset.MustName("b.example."), dns.TypeA, store.Time(0).After(300)); e != nil {
		t.Error("what has ended denies")
	}
	s.Forget(rrset.MustName("x.example."))
	if e := s.Deny(rrset.MustName("b.example."), dns.TypeA, 1); e != nil {
		t.Error("what was forgotten denies")
	}
}

// Records that a wildcard made, or that lead out of the zone, are not learned.
func TestLearnRefuses(t *testing.T) {
	s := New(1<<20, false)
	learn(t, s)
	name := rrset.MustName(apex)
	s.Learn(name, set(t, 1, "a.example. 300 IN NSEC c.example. A"), store.Time(0).After(300))
	s.Learn(name, set(t, -1, "a.example. 300 IN NSEC c.other. A"), store.Time(0).After(300))
	s.Learn(name, rrset.New(rrset.MustName("example."), rrset.TypeNSEC, 300, rrset.MustName("zz.example.")), store.Time(0).After(300))
	if e := s.Deny(rrset.MustName("b.example."), dns.TypeA, 1); e != nil {
		t.Errorf("%+v", e)
	}
}

// Over many zones, what is denied is what does not exist, by NSEC and by NSEC3.
func TestAgainstZones(t *testing.T) {
	for round := range 60 {
		r := rand.New(rand.NewPCG(1, uint64(round)))
		names, exists := randomZone(r)
		for _, hashed := range []bool{false, true} {
			s := New(1<<22, true)
			learn(t, s, chain(names, hashed)...)
			denied := 0
			for range 200 {
				q := random(r)
				e := s.Deny(rrset.MustName(q), dns.TypeA, 1)
				if e == nil {
					if !hashed && !exists[q] && !covered(names, q) {
						t.Errorf("round %d, %s is not denied", round, q)
					}
					continue
				}
				denied++
				has := exists[q] && names[q] || !exists[q] && covered(names, q)
				if e.Kind == store.NXDomain && (exists[q] || covered(names, q)) || has {
					t.Errorf("round %d, hashed %v, %s: kind %d, exists %v, covered %v", round, hashed, q, e.Kind, exists[q], covered(names, q))
				}
			}
			if denied == 0 {
				t.Errorf("round %d, hashed %v: nothing is denied", round, hashed)
			}
		}
	}
}

// randomZone is names that have an A record, and all that exist, empty non-terminals among them.
func randomZone(r *rand.Rand) (names, exists map[string]bool) {
	names, exists = map[string]bool{apex: true}, map[string]bool{}
	for range 1 + r.IntN(8) {
		n := random(r)
		if r.IntN(4) == 0 {
			n = "*." + n
		}
		names[n] = true
	}
	for n := range names {
		for ; n != apex; n = n[strings.Index(n, ".")+1:] {
			exists[n] = true
		}
	}
	exists[apex] = true
	return names, exists
}

func random(r *rand.Rand) string {
	n := apex
	for range 1 + r.IntN(3) {
		n = string(rune('a'+r.IntN(4))) + "." + n
	}
	return n
}

// covered reports whether a wildcard answers for a name that does not exist.
func covered(names map[string]bool, q string) bool {
	all := map[string]bool{}
	for n := range names {
		for ; ; n = n[strings.Index(n, ".")+1:] {
			if all[n] = true; n == apex {
				break
			}
		}
	}
	for !all[q] {
		q = q[strings.Index(q, ".")+1:]
	}
	return names["*."+q]
}

func hash(name string) string {
	h := sha1.Sum([]byte(rrset.MustName(name)))
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(h[:]))
}

// chain is the NSEC or NSEC3 records of a zone.
func chain(names map[string]bool, hashed bool) (texts []string) {
	var owners []string
	types := map[string]string{}
	if hashed {
		all := map[string]bool{}
		for n := range names {
			for m := n; ; m = m[strings.Index(m, ".")+1:] {
				if all[m] = true; m == apex {
					break
				}
			}
		}
		for n := range all {
			owners = append(owners, hash(n))
			if names[n] {
				types[hash(n)] = "A RRSIG"
			}
		}
		sort.Strings(owners)
	} else {
		for n := range names {
			owners = append(owners, n)
		}
		sort.Slice(owners, func(i, j int) bool { return order(rrset.MustName(owners[i])) < order(rrset.MustName(owners[j])) })
	}
	for i, o := range owners {
		next := owners[(i+1)%len(owners)]
		if hashed {
			texts = append(texts, fmt.Sprintf("%s.%s 300 IN NSEC3 1 0 0 - %s %s", o, apex, next, types[o]))
		} else {
			texts = append(texts, fmt.Sprintf("%s 300 IN NSEC %s A RRSIG NSEC", o, next))
		}
	}
	return texts
}

// What is kept stays within its bounds.
func TestBounds(t *testing.T) {
	s := New(300<<10, false)
	for i := range 3000 {
		learn(t, s, fmt.Sprintf("n%d.example. 300 IN NSEC n%d.example. A RRSIG NSEC", i, i+1))
		if _, octets := s.Total(); octets > 300<<10 {
			t.Fatalf("%d octets", octets)
		}
	}
	z := &zone{}
	for i := range mostInZone + 100 {
		x := set(t, -1, fmt.Sprintf("m%05d.example. 300 IN NSEC m%05d.example. A RRSIG NSEC", i, i+1))
		z.add(span{record: record{x, 1}, order: order(x.Name)})
	}
	if len(z.spans) != mostInZone || !sort.SliceIsSorted(z.spans, func(i, j int) bool { return z.spans[i].order < z.spans[j].order }) {
		t.Errorf("%d records", len(z.spans))
	}
}

func BenchmarkDeny(b *testing.B) {
	s := New(8<<20, false)
	for i := range 1000 {
		learn(b, s, fmt.Sprintf("n%04d.example. 300 IN NSEC n%04d.example. A RRSIG NSEC", i, i+1))
	}
	learn(b, s, "example. 300 IN NSEC n0000.example. SOA NS")
	name := rrset.MustName("n0500a.example.")
	b.ReportAllocs()
	for b.Loop() {
		if s.Deny(name, wire.TypeA, 1) == nil {
			b.Fatal("not denied")
		}
	}
}
