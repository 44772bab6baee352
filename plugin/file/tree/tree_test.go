package tree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

func a(name string) dns.RR { return test.A(name + " 300 IN A 192.0.2.1") }

func names(elems []*Elem) string {
	var s []string
	for _, e := range elems {
		s = append(s, e.Name())
	}
	return strings.Join(s, " ")
}

// TestOrder has the names of RFC 4034 §6.1 and more.
func TestOrder(t *testing.T) {
	want := []string{"example.", "a.example.", "yljkjljk.a.example.", "Z.a.example.", `b\.c.a.example.`, "zABC.a.EXAMPLE.", "z.example.", `\001.z.example.`, "*.z.example.", `\200.z.example.`}
	tr := new(Tree)
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(want)) {
		tr.Insert(a(want[i]))
	}
	got := names(tr.All())
	if w := `example. a.example. b\.c.a.example. yljkjljk.a.example. Z.a.example. zABC.a.EXAMPLE. z.example. \001.z.example. *.z.example. \200.z.example.`; got != w {
		t.Errorf("got  %s\nwant %s", got, w)
	}
	if tr.Min().Name() != "example." || tr.Max().Name() != `\200.z.example.` || tr.Len() != len(want) {
		t.Errorf("from %s to %s, %d names", tr.Min().Name(), tr.Max().Name(), tr.Len())
	}
}

func TestSearch(t *testing.T) {
	tr := new(Tree)
	for _, n := range []string{"example.org.", "b.example.org.", "d.example.org."} {
		tr.Insert(a(n))
	}
	for _, tc := range []struct{ name, at, prev, next string }{
		{"B.Example.org.", "b.example.org.", "b.example.org.", "b.example.org."},
		{`\098.example.org.`, "b.example.org.", "b.example.org.", "b.example.org."},
		{"a.example.org.", "", "example.org.", "b.example.org."},
		{"c.example.org.", "", "b.example.org.", "d.example.org."},
		{"x.d.example.org.", "", "d.example.org.", ""},
		{"com.", "", "", "example.org."},
	} {
		for what, f := range map[string]struct {
			search func(string) (*Elem, bool)
			want   string
		}{"Search": {tr.Search, tc.at}, "Prev": {tr.Prev, tc.prev}, "Next": {tr.Next, tc.next}} {
			e, ok := f.search(tc.name)
			if ok != (f.want != "") || ok && e.Name() != f.want || !ok && e != nil {
				t.Errorf("%s(%s): %v %v, want %q", what, tc.name, e, ok, f.want)
			}
		}
	}
	b, _ := tr.Search("b.example.org.")
	if Less(b, "a.example.org.") >= 0 || Less(b, "B.example.org.") != 0 || Less(b, "c.example.org.") <= 0 {
		t.Error("Less does not compare the name with that of the Elem")
	}
	empty := new(Tree)
	if e, ok := empty.Search("example.org."); ok || e != nil || empty.Min() != nil || empty.Max() != nil || len(empty.All()) != 0 {
		t.Error("an empty tree has something")
	}
	empty.Delete(a("example.org."))
	empty.DeleteMin()
	empty.DeleteMax()
}

// TestBalance does many insertions and removals, with a sorted list beside, and looks at the form of the tree.
func TestBalance(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	tr := new(Tree)
	there := map[string]bool{}
	for i := range 20000 {
		name := fmt.Sprintf("n%03d.example.org.", r.IntN(400))
		switch op := r.IntN(20); {
		case op < 10+i/2000%2*8-4:
			tr.Insert(a(name))
			there[name] = true
		case op == 19 && len(there) > 0:
			first := slices.Sorted(func(yield func(string) bool) {
				for n := range there {
					if !yield(n) {
						return
					}
				}
			})
			if i%2 == 0 {
				tr.DeleteMin()
				delete(there, first[0])
			} else {
				tr.DeleteMax()
				delete(there, first[len(first)-1])
			}
		default:
			tr.Delete(a(name))
			delete(there, name)
		}
		if i%50 == 0 {
			check(t, tr, there)
		}
	}
}

func check(t *testing.T, tr *Tree, there map[string]bool) {
	t.Helper()
	all := tr.All()
	if len(all) != len(there) || tr.Count != len(there) {
		t.Fatalf("%d names, counted %d, want %d", len(all), tr.Count, len(there))
	}
	for i, e := range all {
		if !there[e.Name()] || i > 0 && all[i-1].Name() >= e.Name() {
			t.Fatalf("%s is not in place", e.Name())
		}
	}
	if tr.Root.red() {
		t.Fatal("the root is red")
	}
	if _, err := blackHeight(tr.Root); err != nil {
		t.Fatal(err)
	}
}

func blackHeight(n *Node) (int, error) {
	if n == nil {
		return 0, nil
	}
	if n.Right.red() {
		return 0, fmt.Errorf("%s has a red right child", n.Elem.Name())
	}
	if n.red() && n.Left.red() {
		return 0, fmt.Errorf("%s is red and has a red child", n.Elem.Name())
	}
	l, errL := blackHeight(n.Left)
	r, errR := blackHeight(n.Right)
	if err := errors.Join(errL, errR); err != nil {
		return 0, err
	}
	if l != r {
		return 0, fmt.Errorf("%s: ways of %d and %d", n.Elem.Name(), l, r)
	}
	if n.Color == Black {
		l++
	}
	return l, nil
}

func TestElem(t *testing.T) {
	tr := new(Tree)
	rrs := []dns.RR{test.MX("*.Example.org. 300 IN MX 5 a."), a("*.example.org."), test.A("*.example.org. 300 IN A 192.0.2.2")}
	for _, rr := range rrs {
		tr.Insert(rr)
	}
	e, _ := tr.Search("*.example.org.")
	if e.Name() != "*.Example.org." || !slices.Equal(e.Types(), []uint16{dns.TypeA, dns.TypeMX}) || e.Empty() {
		t.Errorf("%s %v", e.Name(), e.Types())
	}
	if all := e.All(); len(all) != 3 || all[0] != rrs[1] || all[1] != rrs[2] || all[2] != rrs[0] {
		t.Errorf("all: %v", all)
	}
	wild := e.TypeForWildcard(dns.TypeA, "x.example.org.")
	if len(wild) != 2 || wild[1].String() != "x.example.org.\t300\tIN\tA\t192.0.2.2" || rrs[2].Header().Name != "*.example.org." {
		t.Errorf("for a wildcard: %v, of %v", wild, rrs[2])
	}
	if e.TypeForWildcard(dns.TypeTXT, "x.example.org.") != nil || e.Type(dns.TypeTXT) != nil {
		t.Error("a type that is not there")
	}
	before := tr.Changes()
	got := e.Type(dns.TypeA)
	e.Insert(a("*.example.org."))
	if len(got) != 2 || len(e.Type(dns.TypeA)) != 3 || tr.Changes() == before {
		t.Errorf("after an insertion: %d and %d records, changes %d", len(got), len(e.Type(dns.TypeA)), tr.Changes())
	}
	e.Delete(rrs[0])
	e.Delete(rrs[1])
	if !e.Empty() || tr.Len() != 1 {
		t.Error("an Elem without records stays, and is empty")
	}
	alone := NewElem(rrs...)
	if alone.Name() != "*.Example.org." || len(alone.All()) != 3 {
		t.Error("an Elem in no tree")
	}
}

func TestDelete(t *testing.T) {
	tr := new(Tree)
	tr.Insert(a("x.example.org."))
	tr.Insert(test.A("x.example.org. 300 IN A 192.0.2.2"))
	tr.Insert(test.MX("x.example.org. 300 IN MX 5 a."))
	tr.Delete(a("X.example.org."))
	if e, ok := tr.Search("x.example.org."); !ok || len(e.All()) != 1 {
		t.Error("other types than the one that is deleted go or stay wrongly")
	}
	tr.Delete(test.MX("x.example.org. 300 IN MX 9 b."))
	if _, ok := tr.Search("x.example.org."); ok || tr.Len() != 0 {
		t.Error("a name without records stays")
	}
}

func TestWalk(t *testing.T) {
	tr := new(Tree)
	for _, rr := range []dns.RR{a("ns1.example.org."), test.NS("sub.example.org. 300 IN NS ns.sub.example.org."), a("ns.sub.example.org."), test.NS("deep.sub.example.org. 300 IN NS ns1.example.org."),
		a("subway.example.org."), a("a.example.org.")} {
		tr.Insert(rr)
	}
	var got []string
	err := tr.AuthWalk(func(e *Elem, sets map[uint16][]dns.RR, auth bool) error {
		got = append(got, fmt.Sprintf("%s %d %v", strings.TrimSuffix(e.Name(), ".example.org."), len(sets), auth))
		tr.Insert(test.TXT(e.Name() + ` 300 IN TXT "added meanwhile"`)) // a signer does so
		return nil
	})
	want := "a 1 true|ns1 1 true|sub 1 true|deep.sub 1 false|ns.sub 1 false|subway 1 true"
	if s := strings.Join(got, "|"); s != want || err != nil {
		t.Errorf("got  %s\nwant %s (%v)", s, want, err)
	}
	stop := errors.New("stop")
	n := 0
	if err := tr.Walk(func(_ *Elem, sets map[uint16][]dns.RR) error {
		if n++; len(sets) != 2 {
			t.Errorf("%d types", len(sets))
		}
		if n == 3 {
			return stop
		}
		return nil
	}); err != stop || n != 3 {
		t.Errorf("%v after %d", err, n)
	}
}

func TestGlue(t *testing.T) {
	tr := new(Tree)
	sig := test.RRSIG("ns.sub.example.org. 300 IN RRSIG A 13 4 300 20450101000000 20200101000000 1 example.org. YQ==")
	for _, rr := range []dns.RR{a("ns.sub.example.org."), test.AAAA("ns.sub.example.org. 300 IN AAAA 2001:db8::1"), sig, a("ns1.example.org.")} {
		tr.Insert(rr)
	}
	ns := []dns.RR{test.NS("sub.example.org. 300 IN NS ns1.example.org."), test.NS("sub.example.org. 300 IN NS ns.sub.example.org."), test.NS("sub.example.org. 300 IN NS none.sub.example.org.")}
	if glue := tr.Glue(ns, false); len(glue) != 2 {
		t.Errorf("glue %v", glue)
	}
	if glue := tr.Glue(ns, true); len(glue) != 3 || glue[1] != sig {
		t.Errorf("signed glue %v", glue)
	}
}

// TestTogether has readers and writers at one time; the race detector looks on.
func TestTogether(t *testing.T) {
	tr := new(Tree)
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for i := range 300 {
				tr.Insert(a(fmt.Sprintf("n%d.example.org.", i*(w+1)%50)))
				if i%3 == 0 {
					tr.Delete(a(fmt.Sprintf("n%d.example.org.", i%50)))
				}
				if e, ok := tr.Search("n1.example.org."); ok {
					e.Insert(a("n1.example.org."))
				}
			}
		})
		wg.Go(func() {
			for range 100 {
				tr.Walk(func(e *Elem, sets map[uint16][]dns.RR) error {
					for _, rrs := range sets {
						_ = append(rrs, nil)
					}
					e.Type(dns.TypeA)
					return nil
				})
				tr.Prev("n25.example.org.")
				tr.Len()
			}
		})
	}
	wg.Wait()
	names := map[string]bool{}
	tr.Walk(func(e *Elem, _ map[uint16][]dns.RR) error {
		if found, ok := tr.Search(e.Name()); !ok || found != e {
			t.Errorf("%s is not found", e.Name())
		}
		names[e.Name()] = true
		return nil
	})
	if len(names) != tr.Len() || len(names) == 0 {
		t.Errorf("%d names are walked over, of %d", len(names), tr.Len())
	}
}
