package cache

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

func testEntry(i int) *entry {
	name := wire.MustName(fmt.Sprintf("n%d.example.org", i))
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(i))
	return entryOf(key{name: name, hash: wire.Hash(b[:]), about: about{qtype: 1, qclass: 1}})
}

// entryOf is an entry of a key that answers nothing.
func entryOf(k key) *entry {
	return &entry{hash: k.hash, about: k.about, packed: wire.PackKey(k.name)}
}

// has is the entry of e's key.
func (s *store) has(e *entry) *entry {
	k := e.key()
	return s.get(&k)
}

// cut takes the entry of e's key out.
func (s *store) cut(e *entry) {
	k := e.key()
	s.remove(&k)
}

func unbounded() *budget { return newBudget(1 << 40) }

// add stores e, in the place of an older entry of its key.
func (s *store) add(e *entry) {
	k := e.key()
	s.put(&k, func(*entry) *entry { return e })
}

// remove takes the entry of k out.
func (s *store) remove(k *key) {
	if s.get(k) != nil {
		s.put(k, func(*entry) *entry { return nil })
	}
}

func TestStore(t *testing.T) {
	s := newStore(2000, unbounded(), 0)
	var all []*entry
	for i := range 2000 {
		e := testEntry(i)
		all = append(all, e)
		if s.add(e); s.len() != i+1 {
			t.Fatalf("entry %d: %d are left", i, s.len())
		}
	}
	for i, e := range all {
		if got := s.has(e); got != e {
			t.Fatalf("entry %d: got %v", i, got)
		}
	}
	other := all[7].key()
	other.qtype = 28
	if s.get(&other) != nil {
		t.Error("an entry was found for another type")
	}
	again := testEntry(7)
	if s.add(again); s.has(all[7]) != again || s.len() != 2000 {
		t.Error("an entry was not replaced by a newer one")
	}
	s.cut(again)
	s.cut(again)
	if s.has(again) != nil || s.len() != 1999 {
		t.Errorf("after remove: %d entries", s.len())
	}
	s.add(again)
	for i := 2000; i < 7000; i++ {
		s.add(testEntry(i))
		if s.len() > 2000 {
			t.Fatalf("%d entries", s.len())
		}
	}
	if s.len() != 2000 {
		t.Errorf("%d entries after many", s.len())
	}
	s.clear()
	if s.len() != 0 || s.budget.used.Load() != 0 {
		t.Errorf("after clear: %d entries, %d octets", s.len(), s.budget.used.Load())
	}
}

// Storing the same names again and again must not make the store grow.
func TestStoreReplacesInPlace(t *testing.T) {
	s := newStore(5000, unbounded(), 0)
	for range 100 {
		for i := range 50 {
			s.add(testEntry(i))
		}
	}
	queued := 0
	for i := range s.shards {
		for _, l := range s.shard(uint64(i)).classes {
			queued += l.small.n + l.main.n
		}
	}
	if s.len() != 50 || queued != 50 {
		t.Errorf("%d entries, %d in queues", s.len(), queued)
	}
	if want := 50 * testEntry(10).size(); s.budget.used.Load() > want+50 {
		t.Errorf("%d octets, want about %d", s.budget.used.Load(), want)
	}
}

func TestStoreBytes(t *testing.T) {
	b := newBudget(200 * testEntry(1).size())
	s := newStore(100000, b, 0)
	for i := range 5000 {
		s.add(testEntry(i))
		if b.used.Load() > b.limit.Load() {
			t.Fatalf("%d octets, the budget is %d", b.used.Load(), b.limit.Load())
		}
	}
	if s.len() < 150 {
		t.Errorf("only %d entries", s.len())
	}
}

// Names that are asked for again stay while many others pass by once.
func TestStoreResistsScan(t *testing.T) {
	s := newStore(minCapacity, unbounded(), 0)
	popular := 300
	for i := range popular {
		e := testEntry(i)
		s.add(e)
		e.touch()
	}
	for i := 10000; i < 60000; i++ {
		s.add(testEntry(i))
		if i%20 == 0 {
			if e := s.has(testEntry(i / 20 % popular)); e != nil {
				e.touch()
			}
		}
	}
	kept := 0
	for i := range popular {
		if s.has(testEntry(i)) != nil {
			kept++
		}
	}
	if kept < popular*9/10 {
		t.Errorf("%d of %d popular entries are left", kept, popular)
	}
}

// A table that entries go from finds all others, and has marks only where searches go on.
func TestTableRemoves(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	tab, there, taken := newTable(64), map[int]*entry{}, 0
	for range 20000 {
		i := r.IntN(200)
		if e := there[i]; e != nil {
			taken -= tab.remove(e)
			delete(there, i)
		} else if len(there) < 30 && taken < 60 {
			there[i] = testEntry(i)
			if tab.insert(there[i]) {
				taken++
			}
		}
		filled := 0
		for j := range tab.slots {
			if tab.slots[j].tag.Load() != 0 {
				filled++
			} else if before := (j - 1) & 63; tab.slots[before].entry.Load() == removed && tab.slots[before].tag.Load() != 0 {
				t.Fatalf("slot %d is marked in vain", before)
			}
		}
		if filled != taken {
			t.Fatalf("%d slots are taken, not %d", filled, taken)
		}
		for i := range 200 {
			k := testEntry(i).key()
			if got := tab.find(&k); got != there[i] {
				t.Fatalf("entry %d: %v, want %v", i, got, there[i])
			}
		}
	}
	if taken == 0 {
		t.Error("nothing was put in")
	}
}

// What is at hand anyway gives way to what somebody else would have to be asked for, down to its share.
func TestCheapGivesWay(t *testing.T) {
	const size, some = 64 * shards, 2 * shards
	s := newStore(size, unbounded(), 0)
	kinds := func() (n [costs]int) {
		for i := range s.shards {
			for c, l := range s.shard(uint64(i)).classes {
				n[c] += l.live
			}
		}
		return n
	}
	put := func(from, n int, c cost) {
		for i := range n {
			e := testEntry(from + i)
			e.cost = c
			s.add(e)
		}
	}
	put(0, size, costLocal)
	if n := kinds(); n[costLocal] != size {
		t.Errorf("%v: local entries alone may have all", n)
	}
	put(100000, size/2, costRemote)
	if n := kinds(); n[costRemote] < size/2-some {
		t.Errorf("%v of %d remote entries", n, size/2)
	}
	put(200000, 5*size, costLocal)
	if n := kinds(); n[costRemote] < size/2-some {
		t.Errorf("%v: remote entries gave way to local ones", n)
	}
	put(300000, 5*size, costRemote)
	if n := kinds(); n[costLocal] < size/localShare-some || n[costLocal] > size/localShare+some || n[costLocal]+n[costRemote] != size {
		t.Errorf("%v: a quarter is local entries' own", n)
	}
	// An entry may become one of another cost.
	before := kinds()
	for i := range 20 {
		e := testEntry(300000 + 5*size - 1 - i)
		e.cost = costLocal
		s.add(e)
	}
	if n := kinds(); n[costLocal] != before[costLocal]+20 || n[costRemote] != before[costRemote]-20 {
		t.Errorf("%v became %v by 20 changes", before, n)
	}
}

// Any sequence of changes leaves table, queues and counts of one mind.
func TestStoreIsConsistent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := newStore(minCapacity, unbounded(), 0)
	for range 30000 {
		e := testEntry(r.IntN(3000))
		e.cost = cost(r.IntN(int(costs)))
		switch r.IntN(4) {
		case 0:
			s.cut(e)
		case 1:
			if got := s.has(e); got != nil {
				got.touch()
			}
		default:
			s.add(e)
		}
	}
	n, octets := 0, int64(0)
	for i := range s.shards {
		sh := s.shard(uint64(i))
		inTable, of := 0, [costs]int{}
		for e := range sh.table.Load().all {
			inTable++
			of[e.cost]++
			octets += e.size()
			if !hashes(sh.classes[e.cost].queue(e.inMain))[e.hash] {
				t.Fatal("an entry of the table is not in its queue")
			}
		}
		for c := range sh.classes {
			if l := &sh.classes[c]; l.live != of[c] || max(l.small.n, l.main.n) > 8*minCapacity/shards {
				t.Fatalf("shard %d: %d in table, %d and %d in queues, %d live", i, of[c], l.small.n, l.main.n, l.live)
			}
		}
		if inTable != sh.live {
			t.Fatalf("shard %d: %d in table, %d live", i, inTable, sh.live)
		}
		n += inTable
	}
	if n != s.len() || octets != s.budget.used.Load() {
		t.Errorf("%d entries and %d octets, counted %d and %d", n, octets, s.len(), s.budget.used.Load())
	}
}

func hashes(q *queue) map[uint64]bool {
	all := map[uint64]bool{}
	for i := range q.n {
		all[*q.at(i)] = true
	}
	return all
}

// What goes and comes again, and never has to give way, does not make the queues grow.
func TestQueuesStayShort(t *testing.T) {
	s := newStore(5000, unbounded(), 0)
	for range 1000 {
		for i := range 300 {
			s.add(testEntry(i))
			s.cut(testEntry(i))
		}
	}
	for i := range s.shards {
		if sh := s.shard(uint64(i)); len(sh.classes[costRemote].small.ring) > 64 || sh.live != 0 {
			t.Fatalf("shard %d: %d live, room for %d in the queue", i, sh.live, len(sh.classes[costRemote].small.ring))
		}
	}
}

func TestStoreConcurrently(t *testing.T) {
	s := newStore(minCapacity, unbounded(), 0)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for range 5000 {
				e := testEntry(r.IntN(2000))
				if got, k := s.has(e), e.key(); got != nil {
					if !got.is(&k) {
						t.Error("got an entry of another key")
					}
					got.touch()
				} else {
					s.add(e)
				}
				if r.IntN(50) == 0 {
					s.cut(e)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkStoreGet(b *testing.B) {
	s := newStore(10000, unbounded(), 0)
	var keys []key
	for i := range 10000 {
		e := testEntry(i)
		s.add(e)
		keys = append(keys, e.key())
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if s.get(&keys[i%10000]) == nil {
			b.Fatal("not there")
		}
		i++
	}
}

// Whatever comes and goes at one time, in stores that share a budget: what is counted is what is there, and nothing at the end.
func TestStoresConcurrently(t *testing.T) {
	b := newBudget(700 * testEntry(1).size())
	all := []*store{newStore(minCapacity, b, 0), newStore(minCapacity, b, 1)}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range 4000 {
				s, e := all[r.IntN(2)], testEntry(r.IntN(1500))
				switch r.IntN(8) {
				case 0:
					s.cut(e)
				case 1:
					s.sweep(r.IntN(shards), func(e *entry) bool { return e.hash%7 == 0 })
				case 2:
					v := testEntry(r.IntN(20))
					v.more().scope.net = network{asked: true, family: 1, bits: 24, hi: uint64(r.IntN(100)) << 40}
					k := v.key()
					s.put(&k, func(old *entry) *entry { return old.with(v, func(*entry) bool { return false }) })
				default:
					s.add(e)
				}
				if w == 0 && i == 3500 {
					all[0].clear()
				}
			}
		})
	}
	wg.Wait()
	n, octets := int64(0), int64(0)
	for i := range all[1].shards {
		sh := all[1].shard(uint64(i))
		for e := range sh.table.Load().all {
			n += e.weight()
			octets += e.size()
		}
	}
	if all[0].len() != 0 || n == 0 || int64(all[1].len()) != n || b.used.Load() != octets || octets > b.limit.Load() {
		t.Errorf("%d and %d are counted with %d octets, there are 0 and %d with %d", all[0].len(), all[1].len(), b.used.Load(), n, octets)
	}
	if all[1].clear(); all[1].len() != 0 || b.used.Load() != 0 || b.largest() != nil {
		t.Errorf("%d entries and %d octets at the end", all[1].len(), b.used.Load())
	}
}

// TestEmptyStores: stores that hold nothing share a table, which stays empty, and one needs little memory.
func TestEmptyStores(t *testing.T) {
	b := unbounded()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		newStore(2000, b, 0)
	}
	runtime.ReadMemStats(&after)
	if octets := (after.TotalAlloc - before.TotalAlloc) / 100; octets > 30_000 {
		t.Errorf("an empty store takes %d octets", octets)
	}
	first, second := newStore(2000, b, 0), newStore(2000, b, 0)
	for i := range 200 {
		first.add(testEntry(i))
	}
	if first.len() != 200 || second.len() != 0 || second.has(testEntry(3)) != nil || noEntries.slots[0].entry.Load() != nil {
		t.Errorf("%d and %d entries", first.len(), second.len())
	}
}

// A store that has never had an entry has no memory for some: there may be ten thousand.
func TestUnusedStore(t *testing.T) {
	idle, used := newStore(2000, unbounded(), 0), newStore(2000, unbounded(), 0)
	e := testEntry(1)
	k := e.key()
	used.add(e)
	if made(idle) != 0 || made(used) != 1 || idle.get(&k) != nil || idle.len() != 0 || used.get(&k) != e {
		t.Error("what is put into one store is in the other")
	}
	if idle.sweep(0, func(*entry) bool { return true }) != 0 || idle.letGo(0, nil) || made(idle) != 0 {
		t.Error("an unused store gave something up")
	}
	for _, s := range []*store{idle, used} {
		s.clear()
		if s.add(e); s.get(&k) != nil || s.len() != 0 {
			t.Error("a store that was cleared takes an entry")
		}
	}
	third := newStore(2000, unbounded(), 0)
	if third.add(e); third.get(&k) != e {
		t.Error("a new store takes none after another was cleared")
	}
}

// made is how many shards a store has.
func made(s *store) (n int) {
	for i := range s.shards {
		if s.shards[i].Load() != nil {
			n++
		}
	}
	return n
}

// Many put the first entry at one time.
func TestFirstEntries(t *testing.T) {
	for range 50 {
		s := newStore(2000, unbounded(), 0)
		var wg sync.WaitGroup
		for i := range 8 {
			e := testEntry(i)
			e.hash = shards * uint64(i) // all in one shard
			wg.Go(func() { s.add(e) })
		}
		wg.Wait()
		if s.len() != 8 {
			t.Fatalf("%d of 8 entries are left", s.len())
		}
		for i := range 8 {
			e := testEntry(i)
			if e.hash = shards * uint64(i); s.has(e) == nil {
				t.Fatalf("entry %d is lost", i)
			}
		}
	}
}
