package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/policy"
)

func TestOrders(t *testing.T) {
	for name, want := range map[string][]string{
		"sequential":  {"[0 1 2]", "[0 1 2]", "[0 1 2]", "[0 1 2]"},
		"round_robin": {"[0 1 2]", "[1 0 2]", "[2 0 1]", "[0 1 2]"},
	} {
		p := policy.Named(name)
		for i, w := range want {
			if got := fmt.Sprint(p.Order(nil, 3)); got != w {
				t.Errorf("%s, turn %d: got %s, want %s", name, i, got, w)
			}
		}
	}
	for _, name := range policy.Names {
		if got := policy.Named(name).String(); got != name {
			t.Errorf("%s calls itself %s", name, got)
		}
	}
	if policy.Named("best") != nil {
		t.Error("there is a policy best")
	}
}

// Each policy names each upstream once, however many there are, behind what dst holds.
func TestPermutations(t *testing.T) {
	for _, name := range policy.Names {
		p := policy.Named(name)
		for n := range 20 {
			got := p.Order([]int{-1}, n)
			rest := slices.Sorted(slices.Values(got[1:]))
			if got[0] != -1 || fmt.Sprint(rest) != fmt.Sprint(policy.Named("sequential").Order(nil, n)) {
				t.Errorf("%s of %d: %v", name, n, got)
			}
		}
	}
}

func TestRandomIsEven(t *testing.T) {
	p := policy.Named("random")
	for _, n := range []int{2, 3} {
		count := map[string]int{}
		for range 6000 {
			count[fmt.Sprint(p.Order(nil, n))]++
		}
		orders := map[int]int{2: 2, 3: 6}[n]
		if len(count) != orders {
			t.Errorf("%d orders of %d upstreams", len(count), n)
		}
		for order, c := range count {
			if c < 6000/orders*8/10 || c > 6000/orders*12/10 {
				t.Errorf("%s came %d times", order, c)
			}
		}
	}
}

func TestList(t *testing.T) {
	p := policy.Named("round_robin")
	policy.List(p, []string{"a", "b"})
	if got := fmt.Sprint(policy.List(p, []string{"a", "b", "c"})); got != "[b a c]" {
		t.Error(got)
	}
}

func BenchmarkOrder(b *testing.B) {
	for _, name := range policy.Names {
		b.Run(name, func(b *testing.B) {
			p, buf := policy.Named(name), make([]int, 0, 16)
			b.ReportAllocs()
			for b.Loop() {
				buf = p.Order(buf[:0], 4)
			}
		})
	}
}
