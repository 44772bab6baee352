package within_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/within"

	"github.com/miekg/dns"
)

func TestCover(t *testing.T) {
	z := within.Zones{From: wire.MustName("example.org.")}
	z.Except(wire.MustName("a.example.org."), wire.MustName("example.org."))
	for name, want := range map[string]bool{
		"example.org.": true, "b.example.org.": false, "a.example.org.": false, "org.": false, "notexample.org.": false,
	} {
		if got := z.Cover(wire.MustName(name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	z = within.Zones{From: wire.MustName("example.org.")}
	z.Except(wire.MustName("a.example.org."))
	for name, want := range map[string]bool{"b.example.org.": true, "a.example.org.": false, "x.a.example.org.": false} {
		if got := z.Cover(wire.MustName(name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if z.MatchMsg(new(dns.Msg)) || !(&within.Zones{From: wire.Root}).MatchMsg(new(dns.Msg)) {
		t.Error("a message without question is about the root")
	}
}

// Many excepted names are decided about as one by one, however they were told of.
func TestManyExcepted(t *testing.T) {
	name := func(i int) string {
		return []string{"", "x.", "www."}[i%3] + fmt.Sprintf("z%d.", i/9) + []string{"", "sub.", "example."}[i/3%3] + "example.org."
	}
	for n := range 40 {
		z := within.Zones{From: wire.MustName("example.org.")}
		var excepted []string
		for i := range n {
			excepted = append(excepted, name(7*i%100))
			z.Except(wire.MustName(excepted[i]))
		}
		if len(z.Excepted()) != n {
			t.Fatal(n, len(z.Excepted()))
		}
		for i := range 200 {
			want := !slices.ContainsFunc(excepted, func(e string) bool { return dns.IsSubDomain(e, name(i)) })
			if got := z.Cover(wire.MustName(name(i))); got != want {
				t.Errorf("%s with %v excepted: %v", name(i), excepted, got)
			}
		}
	}
}

func BenchmarkCover(b *testing.B) {
	q := wire.MustName("www.internal.example.org.")
	for _, n := range []int{1, 8, 9, 100, 10000} {
		z := within.Zones{From: wire.Root}
		for i := range n {
			z.Except(wire.MustName(fmt.Sprintf("z%d.example.org.", i)))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				z.Cover(q)
			}
		})
	}
}

func TestZone(t *testing.T) {
	if name, err := within.Zone("Example.org", []string{"Example.org."}); err != nil || wire.Text(name) != "example.org." {
		t.Errorf("%q %v", name, err)
	}
	for _, all := range [][]string{nil, {"a..b."}} {
		if _, err := within.Zone("odd", all); err == nil || !strings.Contains(err.Error(), "unable to normalize 'odd'") {
			t.Error(err)
		}
	}
}

// Both forms of the question are decided alike.
func FuzzMatch(f *testing.F) {
	f.Add("www.example.org.")
	f.Add("Internal.Example.org.")
	z := within.Zones{From: wire.MustName("example.org.")}
	z.Except(wire.MustName("internal.example.org."))
	f.Fuzz(func(t *testing.T, name string) {
		m := new(dns.Msg).SetQuestion(name, dns.TypeA)
		b, err := m.Pack()
		var q wire.Query
		if err != nil || !q.Parse(b) || m.Unpack(b) != nil {
			return
		}
		if got, want := z.Match(&q), z.MatchMsg(m); got != want {
			t.Errorf("%s: %v on bytes, %v as a message", name, got, want)
		}
		lower := strings.ToLower(m.Question[0].Name)
		want := dns.IsSubDomain("example.org.", lower) && !dns.IsSubDomain("internal.example.org.", lower)
		if got := z.Match(&q); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	})
}
