package cache

import (
	"container/list"
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// What goes when a store is full is chosen by what these traces say: names as resolvers see them (Zipf's law), alone and with others between
// them that are asked for once (a scan, or a flood of random names), against the two simplest ways.

// trace is the names that are asked for, one after the other; those below popular come again.
type trace struct {
	names   []uint32
	popular uint32
}

// zipfian draws popular names, the i-th in proportion to i^-skew.
func zipfian(popular uint32, skew float64) (draw func() uint32) {
	r := rand.New(rand.NewPCG(1, 2))
	sum, total := make([]float64, popular), 0.0
	for i := range sum {
		total += math.Pow(float64(i+1), -skew)
		sum[i] = total
	}
	return func() uint32 { return uint32(sort.SearchFloat64s(sum, r.Float64()*total)) }
}

// zipf is n queries for popular names, with once others between two of them.
func zipf(n int, popular uint32, skew float64, once int) trace {
	draw, t, other := zipfian(popular, skew), trace{popular: popular}, popular
	for range n {
		t.names = append(t.names, draw())
		for range once {
			t.names = append(t.names, other)
			other++
		}
	}
	return t
}

// keeper is a way to keep a bounded number of names. ask reports whether a name is there; then it is.
type keeper interface{ ask(name uint32) bool }

// hits is the share of the queries for popular names that are answered from k, once it has filled.
func (t trace) hits(k keeper) float64 {
	asked, hits := 0, 0
	for i, name := range t.names {
		hit := k.ask(name)
		if name < t.popular && i > len(t.names)/3 {
			asked++
			if hit {
				hits++
			}
		}
	}
	return float64(hits) / float64(asked)
}

// ours is the store.
type ours struct{ *store }

func (o ours) ask(name uint32) bool {
	h := uint64(name) * 0x9E3779B97F4A7C15
	k := key{name: []byte{0}, hash: h ^ h>>32, about: about{qtype: 1, qclass: 1}}
	if e := o.get(&k); e != nil {
		e.touch()
		return true
	}
	o.add(entryOf(k))
	return false
}

// fifo lets the oldest go; lru the one that was asked for least recently.
type fifo struct {
	size  int
	order *list.List
	at    map[uint32]*list.Element
	lru   bool
}

func newFIFO(size int, lru bool) *fifo {
	return &fifo{size, list.New(), map[uint32]*list.Element{}, lru}
}

func (f *fifo) ask(name uint32) bool {
	if e := f.at[name]; e != nil {
		if f.lru {
			f.order.MoveToFront(e)
		}
		return true
	}
	f.at[name] = f.order.PushFront(name)
	if f.order.Len() > f.size {
		delete(f.at, f.order.Remove(f.order.Back()).(uint32))
	}
	return false
}

var traces = map[string]func() trace{
	"zipf 0.8":           func() trace { return zipf(50000, 20000, 0.8, 0) },
	"zipf 1.0":           func() trace { return zipf(50000, 20000, 1.0, 0) },
	"zipf 1.0 and scan":  func() trace { return zipf(50000, 20000, 1.0, 1) },
	"zipf 1.0 and flood": func() trace { return zipf(25000, 20000, 1.0, 5) },
}

func keepers(size int) map[string]keeper {
	return map[string]keeper{"fifo": newFIFO(size, false), "lru": newFIFO(size, true), "ours": ours{newStore(size, unbounded(), 0)}}
}

// The store keeps more of what is asked for again than the simple ways, and a scan costs it little.
func TestEviction(t *testing.T) {
	const size = 1024
	got := map[string]float64{}
	for name, make := range traces {
		tr := make()
		for way, k := range keepers(size) {
			got[name+" "+way] = tr.hits(k)
		}
		t.Logf("%-20s ours %.3f lru %.3f fifo %.3f", name, got[name+" ours"], got[name+" lru"], got[name+" fifo"])
		if got[name+" ours"] < got[name+" lru"]+0.01 || got[name+" ours"] < got[name+" fifo"]+0.01 {
			t.Errorf("%s: a simple way is as good", name)
		}
	}
	alone, scan := got["zipf 1.0 ours"], got["zipf 1.0 and scan ours"]
	if scan < alone-0.03 {
		t.Errorf("a scan takes %.3f of %.3f hits", alone-scan, alone)
	}
}

func BenchmarkEviction(b *testing.B) {
	for name, make := range traces {
		tr := make()
		for way := range keepers(0) {
			b.Run(name+"/"+way, func(b *testing.B) {
				k := keepers(1024)[way]
				b.ReportMetric(tr.hits(k), "hits/query")
				i := 0
				for b.Loop() {
					k.ask(tr.names[i%len(tr.names)])
					i++
				}
			})
		}
	}
}
