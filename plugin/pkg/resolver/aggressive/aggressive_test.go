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
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
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
		s.Learn(nil, rrset.MustName(apex), set(t, -1, x), store.Time(0).After(300))
	}
}

// Who found all of an answer's records to be secure is told, and nobody if it was not one alone.
func TestBy(t *testing.T) {
	s := New(1<<20, false)
	apex, until := rrset.MustName(apex), store.Time(0).After(300)
	learn := func(by any, text string) { s.Learn(by, apex, set(t, -1, text), until) }
	want := func(name string, by any) {
		t.Helper()
		if e := s.Answer(rrset.MustName(name), dns.TypeA, 1); e == nil || e.By != by {
			t.Errorf("%s: %+v, want by %v", name, e, by)
		}
	}
	soa, low, high := "example. 300 IN SOA a. b. 1 2 3 4 60", "example. 300 IN NSEC a.example. SOA NS RRSIG NSEC", "a.example. 300 IN NSEC *.w.example. A RRSIG NSEC"
	learn("x", soa)
	learn("x", low)
	learn("x", high)
	want("b.example.", "x")
	learn("y", low)
	want("b.example.", nil)
	want("c.a.example.", "x") // it is below a name that exists, so one record denies both it and the wildcard
	learn("y", high)
	want("b.example.", nil) // the SOA is x's
	learn("y", soa)
	want("b.example.", "y")
	learn("y", "*.w.example. 300 IN NSEC z.example. A RRSIG NSEC")
	s.Learn("y", apex, set(t, 2, "q.w.example. 300 IN A 192.0.2.1"), until)
	want("r.w.example.", "y")
	s.Learn("x", apex, set(t, 2, "q.w.example. 300 IN A 192.0.2.1"), until)
	want("r.w.example.", nil)
	learn(nil, soa)
	want("b.example.", nil)
}

func TestAnswer(t *testing.T) {
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
		got, e := "", s.Answer(rrset.MustName(c.name), c.typ, 1)
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
	s.Learn(nil, rrset.MustName(apex), set(t, -1, "example. 900 IN SOA a. b. 1 2 3 4 60"), store.Time(0).After(900))
	if e := s.Answer(rrset.MustName("b.example."), dns.TypeA, store.Time(0).After(300)); e != nil {
		t.Error("what has ended denies")
	}
	s.Forget(rrset.MustName("x.example."))
	if e := s.Answer(rrset.MustName("b.example."), dns.TypeA, 1); e != nil {
		t.Error("what was forgotten denies")
	}
}

// Records that a wildcard made, or that lead out of the zone, are not learned.
func TestLearnRefuses(t *testing.T) {
	s := New(1<<20, false)
	learn(t, s)
	name := rrset.MustName(apex)
	s.Learn(nil, name, set(t, 1, "a.example. 300 IN NSEC c.example. A"), store.Time(0).After(300))
	s.Learn(nil, name, set(t, -1, "a.example. 300 IN NSEC c.other. A"), store.Time(0).After(300))
	s.Learn(nil, name, rrset.New(rrset.MustName("example."), rrset.TypeNSEC, 300, rrset.MustName("zz.example.")), store.Time(0).After(300))
	if e := s.Answer(rrset.MustName("b.example."), dns.TypeA, 1); e != nil {
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
				e := s.Answer(rrset.MustName(q), dns.TypeA, 1)
				if e != nil && e.Kind == store.Positive {
					t.Errorf("round %d, %s: a wildcard that nobody told of answers", round, q)
				}
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

// Over many zones whose wildcards are known by what they were once expanded to, a name is answered by the wildcard that
// answers for it in the zone, and only if it does not exist.
func TestWildcardsOfZones(t *testing.T) {
	for round := range 60 {
		r := rand.New(rand.NewPCG(2, uint64(round)))
		names, exists := randomZone(r)
		names["*.a.example."], exists["*.a.example."], exists["a.example."] = true, true, true
		for _, hashed := range []bool{false, true} {
			s := New(1<<22, true)
			learn(t, s, chain(names, hashed)...)
			for n := range names {
				if strings.HasPrefix(n, "*.") {
					s.Learn(nil, rrset.MustName(apex), set(t, rrset.Labels(rrset.MustName(n))-1, "once.asked."+n[2:]+" 300 IN A 192.0.2.1"), store.Time(0).After(300))
				}
			}
			answered := 0
			for range 200 {
				q := random(r)
				name := rrset.MustName(q)
				e := s.Answer(name, dns.TypeA, 1)
				is, want := e != nil && e.Kind == store.Positive, !exists[q] && covered(names, q)
				if is != want {
					t.Errorf("round %d, hashed %v, %s: expanded %v, want %v", round, hashed, q, is, want)
				}
				if !is {
					continue
				}
				answered++
				if e.Set.Name != name || e.Set.Sigs != 1 || len(e.Denials) != 1 || e.SOA != nil || e.Status != store.Secure || e.TTL > 300 {
					t.Fatalf("round %d, hashed %v, %s: %+v", round, hashed, q, e)
				}
			}
			if answered == 0 {
				t.Errorf("round %d, hashed %v: no wildcard answers", round, hashed)
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

// Of wildcards only what may stand for other names is used, no longer than it and its proof live, and not against what
// is known of it.
func TestWildcard(t *testing.T) {
	cover := "a.example. 300 IN NSEC z.example. A RRSIG NSEC" // *.example. does not lie in it
	hour := store.Time(0).After(3600)
	for what, c := range map[string]struct {
		labels int // of the signature
		set    string
		more   []string
		name   string
		typ    uint16
		now    store.Time
		want   string // type and TTL
	}{
		"an expansion":                {1, "x.example. 900 IN A 192.0.2.1", nil, "b.example.", dns.TypeA, 1, "1 300"},
		"the wildcard itself":         {1, "*.example. 900 IN A 192.0.2.1", nil, "b.example.", dns.TypeA, 1, "1 300"},
		"a name further down":         {1, "x.example. 900 IN A 192.0.2.1", nil, "c.b.example.", dns.TypeA, 1, "1 300"},
		"its own TTL":                 {1, "x.example. 100 IN A 192.0.2.1", nil, "b.example.", dns.TypeA, store.Time(0).After(40), "1 60"},
		"its end":                     {1, "x.example. 100 IN A 192.0.2.1", nil, "b.example.", dns.TypeA, store.Time(0).After(100), ""},
		"the end of the proof":        {1, "x.example. 900 IN A 192.0.2.1", nil, "b.example.", dns.TypeA, store.Time(0).After(300), ""},
		"another type":                {1, "x.example. 900 IN A 192.0.2.1", nil, "b.example.", dns.TypeTXT, 1, ""},
		"no wildcard":                 {2, "x.example. 900 IN A 192.0.2.1", nil, "b.example.", dns.TypeA, 1, ""},
		"an alias":                    {1, "x.example. 900 IN CNAME www.example.", nil, "b.example.", dns.TypeA, 1, "5 300"},
		"the alias itself":            {1, "x.example. 900 IN CNAME www.example.", nil, "b.example.", dns.TypeCNAME, 1, "5 300"},
		"a delegation":                {1, "x.example. 900 IN NS ns.example.", nil, "b.example.", dns.TypeNS, 1, ""},
		"a DNAME":                     {1, "x.example. 900 IN DNAME www.example.", nil, "b.example.", dns.TypeDNAME, 1, ""},
		"above its zone":              {0, "x.example. 900 IN A 192.0.2.1", nil, "b.example.", dns.TypeA, 1, ""},
		"a name that exists":          {1, "x.example. 900 IN A 192.0.2.1", nil, "a.example.", dns.TypeMX, 1, "denied"},
		"something closer":            {1, "x.example. 900 IN A 192.0.2.1", []string{"y.b.example. 300 IN NSEC z.b.example. A"}, "yy.b.example.", dns.TypeA, 1, "denied"},
		"below a cut":                 {1, "x.example. 900 IN A 192.0.2.1", []string{"a.example. 300 IN NSEC z.example. NS"}, "b.a.example.", dns.TypeA, 1, ""},
		"the type is known to lack":   {1, "x.example. 900 IN TXT x", []string{"*.example. 300 IN NSEC a.example. A"}, "b.example.", dns.TypeTXT, 1, "denied"},
		"the type is known":           {1, "x.example. 900 IN A 192.0.2.1", []string{"*.example. 300 IN NSEC a.example. A"}, "b.example.", dns.TypeA, 1, "1 300"},
		"an alias now":                {1, "x.example. 900 IN A 192.0.2.1", []string{"*.example. 300 IN NSEC a.example. CNAME"}, "b.example.", dns.TypeA, 1, ""},
		"a delegation now":            {1, "x.example. 900 IN A 192.0.2.1", []string{"*.example. 300 IN NSEC a.example. A NS"}, "b.example.", dns.TypeA, 1, ""},
		"the wildcard is denied":      {1, "x.example. 900 IN A 192.0.2.1", []string{"example. 300 IN NSEC a.example. SOA NS"}, "b.example.", dns.TypeA, 1, "denied"},
		"DS":                          {1, "x.example. 900 IN DS 1 8 2 00", nil, "b.example.", dns.TypeDS, 1, ""},
		"an asterisk in the question": {1, "x.example. 900 IN A 192.0.2.1", []string{"*.example. 300 IN NSEC a.example. A"}, "b.*.example.", dns.TypeA, 1, "denied"},
	} {
		s := New(1<<20, false)
		learn(t, s, append([]string{cover}, c.more...)...)
		x := set(t, c.labels, c.set)
		s.Learn(nil, rrset.MustName(apex), x, min(store.Time(0).After(x.TTL), hour))
		got, e := "", s.Answer(rrset.MustName(c.name), c.typ, c.now)
		if e != nil {
			if got = "denied"; e.Kind == store.Positive {
				got = fmt.Sprint(e.Set.Type, " ", e.TTL)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// Signatures that do not agree in how many labels they sign say nothing: which of them was verified is not known.
func TestWildcardOfTwoMinds(t *testing.T) {
	s := New(1<<20, false)
	learn(t, s, "a.example. 300 IN NSEC z.example. A RRSIG NSEC")
	text := "x.y.example. 900 IN A 192.0.2.1"
	var sigs []string
	for _, labels := range []int{2, 1} {
		set(t, labels, text).EachSig(func(r string) bool { sigs = append(sigs, r); return true })
	}
	s.Learn(nil, rrset.MustName(apex), rrset.Signed(set(t, 1, text), sigs...), store.Time(0).After(900))
	if e := s.Answer(rrset.MustName("b.example."), dns.TypeA, 1); e != nil {
		t.Errorf("%+v", e)
	}
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
	for i := range mostWilds + 100 {
		k, wild := wildcardOf(set(t, 2, fmt.Sprintf("x.m%05d.example. 300 IN A 192.0.2.1", i)))
		z.addWild(k, record{wild, 1, nil})
		z.addWild(k, record{wild, 2, nil})
	}
	each := 0
	for _, r := range z.wilds {
		each = r.set.Size() + wildOctets
	}
	if len(z.wilds) != mostWilds || z.octets != mostWilds*each {
		t.Errorf("%d wildcards, %d octets", len(z.wilds), z.octets)
	}
	for i := range mostInZone + 100 {
		x := set(t, -1, fmt.Sprintf("m%05d.example. 300 IN NSEC m%05d.example. A RRSIG NSEC", i, i+1))
		p, _ := validate.ParseSpan(x, rrset.MustName(apex))
		z.add(newSpan(p, record{x, 1, nil}, rrset.MustName(apex)))
	}
	if len(z.spans) != mostInZone || !sort.SliceIsSorted(z.spans, func(i, j int) bool { return z.spans[i].order < z.spans[j].order }) {
		t.Errorf("%d records", len(z.spans))
	}
}

func BenchmarkAnswer(b *testing.B) {
	s := New(8<<20, false)
	for i := range 1000 {
		learn(b, s, fmt.Sprintf("n%04d.example. 300 IN NSEC n%04d.example. A RRSIG NSEC", i, i+1))
	}
	learn(b, s, "example. 300 IN NSEC n0000.example. SOA NS")
	name := rrset.MustName("n0500a.example.")
	b.ReportAllocs()
	for b.Loop() {
		if s.Answer(name, wire.TypeA, 1) == nil {
			b.Fatal("not denied")
		}
	}
}
