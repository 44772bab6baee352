package zone

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// randomPrefix is a name without origin, with labels that are hard to order.
func randomPrefix(r *rand.Rand) []byte {
	var p []byte
	for range r.IntN(4) {
		n := 1 + r.IntN(4)
		p = append(p, byte(n))
		for range n {
			p = append(p, []byte{0, 1, 2, '*', '-', '0', 'a', 'b', 0xff}[r.IntN(9)])
		}
	}
	return p
}

// TestKeys shows that names in the order of keys and then of compare are in the canonical order of whole names.
func TestKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	origin := wire.MustName("example.org")
	sign := func(n int) int { return min(1, max(-1, n)) }
	for range 200000 {
		a, b := randomPrefix(r), randomPrefix(r)
		want := sign(wire.Compare(append(slices.Clone(a), origin...), append(slices.Clone(b), origin...)))
		if got := sign(compare(a, b)); got != want {
			t.Fatalf("compare(%q, %q) is %d, want %d", a, b, got, want)
		}
		if ka, kb := keyOf(a), keyOf(b); ka < kb && want != -1 || ka > kb && want != 1 {
			t.Fatalf("keys of %q and %q: %x, %x, but the order is %d", a, b, ka, kb, want)
		}
	}
}

// TestBefore compares the search in a chain with looking at all of it.
func TestBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	b := NewBuilder(wire.MustName("example.org"), t.Logf)
	for range 300 {
		if err := b.Add(append(randomPrefix(r), wire.MustName("example.org")...), typeNSEC, 5, []byte{0, 0, 1, 2}); err != nil {
			t.Fatal(err)
		}
	}
	z, err := b.BuildTable()
	if err != nil {
		t.Fatal(err)
	}
	for range 20000 {
		p := randomPrefix(r)
		got, exact := z.nsec.before(z, p)
		var want []byte
		found, same := false, false
		for _, place := range z.nsec.places {
			if o := z.at(place).prefix(); compare(o, p) <= 0 && (!found || compare(o, want) > 0) {
				want, found, same = o, true, compare(o, p) == 0
			}
		}
		if (got != nil) != found || exact != same || found && string(got.prefix()) != string(want) {
			t.Fatalf("before %q: %v %v, want %q %v", p, got, exact, want, same)
		}
	}
}

func BenchmarkBefore(b *testing.B) {
	for _, bc := range []struct {
		name string
		n    int
	}{{"1000", 1000}, {"1000000", 1000000}} {
		b.Run(bc.name, func(b *testing.B) {
			bu := NewBuilder(wire.MustName("example.org"), b.Logf)
			names := make([][]byte, bc.n)
			for i := range names {
				names[i] = wire.MustName("h" + string(rune('a'+i%26)) + itoa(i) + ".example.org")
				bu.Add(names[i], typeNSEC, 5, []byte{0, 0, 1, 2})
			}
			z, _ := bu.BuildTable()
			r := rand.New(rand.NewPCG(5, 6))
			r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				n := names[i%len(names)]
				z.nsec.before(z, n[:len(n)-len(z.origin)])
				i++
			}
		})
	}
}

func itoa(i int) string {
	if i < 10 {
		return string(rune('0' + i))
	}
	return itoa(i/10) + string(rune('0'+i%10))
}
