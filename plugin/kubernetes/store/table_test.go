package store

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

type item struct{ key, id, name int }

// crowds is a table whose long runs stand apart.
func crowds() *table[item] {
	return &table[item]{id: func(r *item) uint64 { return uint64(r.name) * 0x9e3779b97f4a7c15 }}
}

// hashOf maps many keys to few home slots, and some to the same hash.
func hashOf(key int) uint64 { return uint64(key%37*41) << 33 }

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
	t.Run("slots", func(t *testing.T) { tableModel(t, new(table[item]), 90) })
	t.Run("crowds", func(t *testing.T) {
		tab := crowds()
		most := tableModel(t, tab, 7)
		if most < 3 {
			t.Errorf("only %d crowds at a time", most)
		}
	})
}

// tableModel does it with so many keys, and returns how many crowds there were at most.
func tableModel(t *testing.T, tab *table[item], keys int) (most int) {
	rnd := rand.New(rand.NewPCG(1, 2))
	model := map[int][]*item{} // by key
	total, id := 0, 0
	for step := range 20000 {
		key := rnd.IntN(keys)
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
			r := &item{key, id, have[i].name}
			if !tab.swap(hashOf(key), have[i], r) {
				t.Fatalf("step %d: nothing to swap", step)
			}
			model[key] = slices.Clone(have)
			model[key][i] = r
		case total < 200 || op == 2 && total < 400:
			id++
			r := &item{key, id, id}
			tab.put(hashOf(key), r)
			model[key] = append(slices.Clone(have), r)
			total++
		}
		var want []int
		for _, r := range model[key] {
			want = append(want, r.id)
		}
		slices.Sort(want)
		if got := found(tab, key); !slices.Equal(got, want) {
			t.Fatalf("step %d, key %d: %v, want %v", step, key, got, want)
		}
		if tab.size != total {
			t.Fatalf("step %d: size %d, want %d", step, tab.size, total)
		}
		if s := tab.live.Load(); s != nil {
			most = max(most, len(s.crowds))
		}
	}
	n := 0
	tab.each(func(uint32, *item) { n++ })
	if n != total {
		t.Errorf("each: %d, want %d", n, total)
	}
	if inCrowds := apart(tab); tab.apart != inCrowds {
		t.Errorf("%d records are said to be in crowds, %d are", tab.apart, inCrowds)
	}
	if slots := len(tab.live.Load().tag); slots > 2048 {
		t.Errorf("%d slots for %d records", slots, total)
	}
	return most
}

// apart counts the records that stand in crowds.
func apart(tab *table[item]) (n int) {
	for _, c := range tab.live.Load().crowds {
		c.in.each(func(uint32, *item) { n++ })
	}
	return n
}

// TestTableReaders sees that records which stay are found by readers at any moment, whatever
// comes and goes around them, and that a swapped one is found old or new.
func TestTableReaders(t *testing.T) {
	t.Run("slots", func(t *testing.T) { tableReaders(t, new(table[item]), 1) })
	t.Run("crowds", func(t *testing.T) {
		tab := crowds()
		if came, went := tableReaders(t, tab, 10); came < 2 || went < 2 {
			t.Errorf("records went into crowds %d times, and out of them %d times", came, went)
		}
	})
}

// tableReaders has up to 120 times dense records come and go. It also tells how often crowds came and went.
func tableReaders(t *testing.T, tab *table[item], dense int) (came, went int) {
	const stay = 40
	for key := range stay {
		tab.put(hashOf(key), &item{key, 0, -key})
	}
	swapped := &item{stay, 0, -stay}
	tab.put(hashOf(stay), swapped)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				for key := range stay + 1 {
					if ids := found(tab, key); len(ids) != 1 {
						t.Errorf("key %d found %d times", key, len(ids))
						return
					}
				}
			}
		})
	}
	last := 0
	for round := range 300 {
		var passing []*item
		for key := 1000; key < 1000+round%120*dense; key++ {
			r := &item{key, round, key*1000 + round}
			tab.put(hashOf(key), r)
			passing = append(passing, r)
		}
		next := &item{stay, round, -stay}
		tab.swap(hashOf(stay), swapped, next)
		swapped = next
		switch now := len(tab.live.Load().crowds); {
		case now > last:
			came++
		case now < last:
			went++
		}
		last = len(tab.live.Load().crowds)
		for _, r := range passing {
			tab.remove(hashOf(r.key), r)
		}
		if round%30 == 29 {
			tab.rebuild()
		}
	}
	stop.Store(true)
	wg.Wait()
	return came, went
}

func TestTableFindDoesNotAllocate(t *testing.T) {
	var tab table[item]
	for key := range 100 {
		tab.put(hashOf(key), &item{key, key, key})
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

// TestTableCrowd: what one hash has in tens of thousands is found at once by its id, and goes as it came.
func TestTableCrowd(t *testing.T) {
	tab := crowds()
	const many = 20000
	var all []*item
	for i := range many {
		r := &item{1, i, i}
		tab.put(hashOf(1), r)
		all = append(all, r)
	}
	s := tab.live.Load()
	if len(s.crowds) != 1 || tab.apart < many-len(s.tag) || len(s.tag) > 1024 {
		t.Fatalf("%d crowds, %d of %d records apart, %d slots", len(s.crowds), tab.apart, tab.size, len(s.tag))
	}
	other := &item{2, 7, 7}
	tab.put(hashOf(2), other)
	if got := found(tab, 2); !slices.Equal(got, []int{7}) {
		t.Errorf("the other key: %v", got)
	}
	if got := found(tab, 1); len(got) != many {
		t.Errorf("%d found", len(got))
	}
	if tab.swap(hashOf(1), &item{1, 5, 5}, all[5]) {
		t.Error("a record that isn't there was swapped")
	}
	tab.remove(hashOf(1), &item{1, 5, 5}) // nor is it removed
	if tab.size != many+1 {
		t.Errorf("size %d", tab.size)
	}
	for _, r := range all[3:] {
		tab.remove(hashOf(1), r)
	}
	if got := found(tab, 1); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("left: %v", got)
	}
	for i := range 100 { // the table is built anew, and three are no crowd
		tab.put(hashOf(3+i%30), &item{3 + i%30, i, i})
	}
	if n := apart(tab); n != 0 || tab.apart != 0 || tab.size != 104 {
		t.Errorf("%d stand apart, %d are said to, of %d", n, tab.apart, tab.size)
	}
	if got := found(tab, 1); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("left then: %v", got)
	}
}

// TestTableCrowdsInTime: a run in a table with much room is made a crowd when walking along it has cost as
// much as building the table anew.
func TestTableCrowdsInTime(t *testing.T) {
	tab := crowds()
	for i := range 1600 {
		tab.put(uint64(i)<<33, &item{name: i})
	}
	had := tab.live.Load()
	for i := range 1000 {
		tab.put(hashOf(1), &item{1, i, i})
	}
	if now := tab.live.Load(); len(now.tag) != len(had.tag) || len(now.crowds) != 1 || tab.apart < 800 {
		t.Errorf("%d slots, before %d; %d crowds with %d records", len(now.tag), len(had.tag), len(now.crowds), tab.apart)
	}
}
