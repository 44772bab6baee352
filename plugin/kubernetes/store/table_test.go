package store

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

type item struct{ key, id int }

// hashOf maps many keys to few home slots, and some to the same hash.
func hashOf(key int) uint64 { return uint64(key%37) << 33 }

func found(t *table[item], key int) (ids []int) {
	c := t.find(hashOf(key))
	for r := c.next(); r != nil; r = c.next() {
		if r.key == key {
			ids = append(ids, r.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// TestTableModel compares a table with a plain map through a random life.
func TestTableModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var tab table[item]
	model := map[int][]*item{} // by key
	total, id := 0, 0
	for step := range 20000 {
		key := rnd.IntN(90)
		have := model[key]
		switch op := rnd.IntN(4); {
		case op == 0 && len(have) > 0: // remove
			i := rnd.IntN(len(have))
			tab.remove(hashOf(key), have[i])
			model[key] = slices.Delete(slices.Clone(have), i, i+1)
			total--
		case op == 1 && len(have) > 0: // swap
			i := rnd.IntN(len(have))
			id++
			r := &item{key, id}
			if !tab.swap(hashOf(key), have[i], r) {
				t.Fatalf("step %d: nothing to swap", step)
			}
			model[key] = slices.Clone(have)
			model[key][i] = r
		case total < 200 || op == 2 && total < 400:
			id++
			r := &item{key, id}
			tab.put(hashOf(key), r)
			model[key] = append(slices.Clone(have), r)
			total++
		}
		var want []int
		for _, r := range model[key] {
			want = append(want, r.id)
		}
		slices.Sort(want)
		if got := found(&tab, key); !slices.Equal(got, want) {
			t.Fatalf("step %d, key %d: %v, want %v", step, key, got, want)
		}
		if tab.size != total {
			t.Fatalf("step %d: size %d, want %d", step, tab.size, total)
		}
	}
	n := 0
	tab.each(func(uint32, *item) { n++ })
	if n != total {
		t.Errorf("each: %d, want %d", n, total)
	}
	if slots := len(tab.live.Load().tag); slots > 2048 {
		t.Errorf("%d slots for %d records", slots, total)
	}
}

// TestTableReaders sees that records which stay are found by readers at any moment, whatever
// comes and goes around them, and that a swapped one is found old or new.
func TestTableReaders(t *testing.T) {
	var tab table[item]
	const stay = 40
	for key := range stay {
		tab.put(hashOf(key), &item{key, 0})
	}
	swapped := &item{stay, 0}
	tab.put(hashOf(stay), swapped)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				for key := range stay + 1 {
					if ids := found(&tab, key); len(ids) != 1 {
						t.Errorf("key %d found %d times", key, len(ids))
						return
					}
				}
			}
		})
	}
	for round := range 300 {
		var passing []*item
		for key := 1000; key < 1000+round%120; key++ {
			r := &item{key, round}
			tab.put(hashOf(key), r)
			passing = append(passing, r)
		}
		next := &item{stay, round}
		tab.swap(hashOf(stay), swapped, next)
		swapped = next
		for _, r := range passing {
			tab.remove(hashOf(r.key), r)
		}
	}
	stop.Store(true)
	wg.Wait()
}

func TestTableFindDoesNotAllocate(t *testing.T) {
	var tab table[item]
	for key := range 100 {
		tab.put(hashOf(key), &item{key, key})
	}
	if n := testing.AllocsPerRun(100, func() {
		c := tab.find(hashOf(50))
		for r := c.next(); r != nil; r = c.next() {
			if r.key == 50 {
				return
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
