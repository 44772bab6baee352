package rand_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/rand"
)

func TestInt(t *testing.T) {
	r := rand.New(1)
	seen := make(map[int]bool)
	for range 100 {
		n := r.Int()
		if n < 0 {
			t.Fatalf("got %d", n)
		}
		seen[n] = true
	}
	if len(seen) < 100 {
		t.Errorf("got %d different numbers of 100", len(seen))
	}
}

func TestPerm(t *testing.T) {
	var r rand.Rand // the zero value is good, too
	first := make(map[int]int)
	for range 1000 {
		p := r.Perm(4)
		first[p[0]]++
		slices.Sort(p)
		if !slices.Equal(p, []int{0, 1, 2, 3}) {
			t.Fatalf("got %v", p)
		}
	}
	for n := range 4 {
		if first[n] < 150 { // 250 expected; less happens once in 10^13 runs
			t.Errorf("%d stood first %d times of 1000", n, first[n])
		}
	}
	if got := r.Perm(0); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// One seed gives one sequence, another one another.
func TestSeed(t *testing.T) {
	draw := func(seed int64) (all []int) {
		r := rand.New(seed)
		for range 10 {
			all = append(all, r.Int())
			all = append(all, r.Perm(5)...)
		}
		return all
	}
	if a, b := draw(7), draw(7); !slices.Equal(a, b) {
		t.Errorf("the same seed gave %v and %v", a, b)
	}
	if a, b := draw(7), draw(8); slices.Equal(a, b) {
		t.Errorf("two seeds gave %v", a)
	}
}

func TestConcurrentUse(t *testing.T) {
	r := rand.New(1)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				r.Int()
				r.Perm(3)
			}
		})
	}
	wg.Wait()
}

func BenchmarkInt(b *testing.B) {
	r := rand.New(1)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r.Int()
		}
	})
}
