package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// model is a shelf of one shard in the plainest way: what was used last stands last.
type model struct {
	keys   []int
	values map[int]int
}

func (m *model) use(k int) {
	m.keys = append(slices.DeleteFunc(m.keys, func(o int) bool { return o == k }), k)
}

func (m *model) remove(k int) {
	m.keys = slices.DeleteFunc(m.keys, func(o int) bool { return o == k })
	delete(m.values, k)
}

// A shelf is a map whatever hashes its keys have, and forgets what was used least.
func TestShelfIsAMap(t *testing.T) {
	const limit = 200 // of one shard, each value costs one
	for name, hash := range map[string]func(int) uint32{
		"all different": func(k int) uint32 { return uint32(k) * 2654435761 / shards * shards },
		"of few":        func(k int) uint32 { return uint32(k%7) * shards },
		"of one":        func(int) uint32 { return 0 },
		"high bits":     func(k int) uint32 { return uint32(k) << 22 },
	} {
		t.Run(name, func(t *testing.T) {
			var s shelf[int, int]
			s.init(limit*shards, hash, func(int, int) int64 { return 1 })
			want := model{values: map[int]int{}}
			random := rand.New(rand.NewPCG(1, 2))
			most := 0
			for step := range 20000 {
				k := random.IntN(500)
				switch random.IntN(8) {
				case 0, 1, 2:
					s.update(k, func(int, bool) (int, bool) { return step, true })
					want.use(k)
					if want.values[k] = step; len(want.keys) > limit {
						want.remove(want.keys[0])
					}
				case 3:
					s.remove(k)
					want.remove(k)
				case 4:
					if random.IntN(100) == 0 {
						s.removeIf(func(o, _ int) bool { return o%3 == k%3 })
						for o := range 500 {
							if o%3 == k%3 {
								want.remove(o)
							}
						}
					}
				case 5:
					keys := []int{k}
					for o := range 500 {
						if o != k && hash(o) == hash(k) && len(keys) < 3 {
							keys = append(keys, o)
						}
					}
					good := func(_, v int) bool { return v%2 == 0 }
					got, ok := s.firstOf(keys, good)
					i := slices.IndexFunc(keys, func(o int) bool { v, there := want.values[o]; return there && good(o, v) })
					if ok != (i >= 0) || ok && got != want.values[keys[i]] {
						t.Fatalf("step %d: the first of %v is %d, %v", step, keys, got, ok)
					}
					if ok {
						want.use(keys[i])
					}
				default:
					got, ok := s.get(k)
					if v, there := want.values[k]; ok != there || got != v {
						t.Fatalf("step %d: %d has %d, %v, want %d, %v", step, k, got, ok, v, there)
					}
					if ok {
						want.use(k)
					}
				}
				n, cost := s.total()
				if most = max(most, n); n != len(want.keys) || cost != int64(n) {
					t.Fatalf("step %d: %d values that cost %d, want %d", step, n, cost, len(want.keys))
				}
			}
			if most != limit {
				t.Errorf("there were %d values at most, the limit is %d", most, limit)
			}
		})
	}
}

// A chain has few links: each of a good hash has about one.
func TestShelfGrows(t *testing.T) {
	s := New(1<<30, 1000)
	const n = 100000
	for i := range n {
		name := fmt.Sprintf("\x07n%06d\x00", i)
		s.RRsets.Put(name, 1, entry(AnswerData, 60, "aaaa"), now)
	}
	longest, kept := 0, 0
	for i := range s.RRsets.shelf.shards {
		for _, o := range s.RRsets.shelf.shards[i].chains {
			links := 0
			for ; o != nil; o = o.below {
				links++
			}
			longest, kept = max(longest, links), kept+links
		}
	}
	if kept != n || longest > 20 {
		t.Errorf("%d entries of %d, the longest chain has %d", kept, n, longest)
	}
}

// A name has entries of many types without a long chain.
func TestManyTypes(t *testing.T) {
	s := New(1<<30, 1000)
	for typ := 1; typ < 1<<16; typ++ {
		s.RRsets.Put("\x01a\x00", uint16(typ), entry(AnswerData, 60, "aaaa"), now)
	}
	longest := 0
	for i := range s.RRsets.shelf.shards {
		for _, o := range s.RRsets.shelf.shards[i].chains {
			links := 0
			for ; o != nil; o = o.below {
				links++
			}
			longest = max(longest, links)
		}
	}
	if n, _ := s.RRsets.Total(); n != 1<<16-1 || longest > 10*typesTogether {
		t.Errorf("%d entries, the longest chain has %d", n, longest)
	}
	for _, typ := range []uint16{1, 127, 128, 255, 65535} {
		if s.RRsets.Get("\x01a\x00", typ, now) == nil {
			t.Errorf("type %d is not kept", typ)
		}
	}
}

// What tells of a name and type is its own entry, or else its NXDOMAIN, or else its alias.
func TestLookup(t *testing.T) {
	const name = "\x01a\x00"
	alias := &Entry{Rank: AnswerData, Set: rrset.New(name, wire.TypeCNAME, 60, "\x01b\x00"), TTL: 60, Expires: now.After(60)}
	noAlias := &Entry{Kind: NoData, Rank: AnswerData, TTL: 60, Expires: now.After(60)}
	own := entry(AnswerData, 60, "aaaa")
	short := entry(AnswerData, 1, "aaaa")
	gone := &Entry{Kind: NXDomain, Rank: AuthorityData, TTL: 60, Expires: now.After(60)}
	for _, typ := range []uint16{wire.TypeA, wire.TypeAAAA, 64, 127, 128, 257} {
		for _, tc := range []struct {
			what           string
			own, nx, alias *Entry
			at             Time
			get, lookup    *Entry
		}{
			{"nothing", nil, nil, nil, now, nil, nil},
			{"an RRset", own, nil, nil, now, own, own},
			{"an alias", nil, nil, alias, now, nil, alias},
			{"that it has no alias", nil, nil, noAlias, now, nil, nil},
			{"an RRset and an alias", own, nil, alias, now, own, own},
			{"an RRset that is over, and an alias", short, nil, alias, now.After(2), nil, alias},
			{"NXDOMAIN", nil, gone, nil, now, gone, gone},
			{"NXDOMAIN and an RRset of lower rank", own, gone, nil, now, own, own},
			{"an RRset that is over, and NXDOMAIN", short, gone, nil, now.After(2), gone, gone},
			{"an alias that is over", nil, nil, alias, now.After(61), nil, nil},
		} {
			r := &New(8<<20, 1000).RRsets
			for typ, e := range map[uint16]*Entry{typ: tc.own, wire.TypeCNAME: tc.alias} {
				if e != nil {
					r.Put(name, typ, e, now)
				}
			}
			if tc.nx != nil { // Put would take out what an RRset says the contrary of
				r.shelf.update(keyOf(name, 0), func(*Entry, bool) (*Entry, bool) { return tc.nx, true })
			}
			if got := r.Get(name, typ, tc.at); got != tc.get {
				t.Errorf("type %d, %s: Get is %+v", typ, tc.what, got)
			}
			if got := r.Lookup(name, typ, tc.at); got != tc.lookup {
				t.Errorf("type %d, %s: Lookup is %+v", typ, tc.what, got)
			}
		}
	}
}

// BenchmarkLookup finds that nothing is kept of a name, among a million others.
func BenchmarkLookup(b *testing.B) {
	s := New(1<<30, 1000)
	for i := range 1000000 {
		name := fmt.Sprintf("\x07n%06d\x07example\x03org\x00", i)
		s.RRsets.Put(name, 1, entry(AnswerData, 60, "aaaa"), now)
	}
	names := make([]string, 1<<16)
	for i := range names {
		names[i] = fmt.Sprintf("\x07m%06d\x07example\x03org\x00", i)
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if i++; s.RRsets.Lookup(names[i%len(names)], wire.TypeA, now) != nil {
			b.Fatal("something")
		}
	}
}
