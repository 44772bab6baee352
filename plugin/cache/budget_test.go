package cache

import (
	"bufio"
	"context"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Stores that share a budget give way in turn: a new one gets its share, and a small one is left alone.
func TestStoresShareTheBudget(t *testing.T) {
	one := testEntry(1).size()
	b := newBudget(1000 * one)
	first, second, small := newStore(1<<20, b, 0), newStore(1<<20, b, 0), newStore(1<<20, b, 0)
	for i := range 20 {
		small.add(testEntry(i))
	}
	for i := range 3000 {
		first.add(testEntry(i))
	}
	for i := range 3000 {
		second.add(testEntry(i))
	}
	if b.used.Load() > b.limit.Load() || b.used.Load() != first.octets.Load()+second.octets.Load()+small.octets.Load() {
		t.Errorf("%d octets of %d: %d, %d and %d", b.used.Load(), b.limit.Load(), first.octets.Load(), second.octets.Load(), small.octets.Load())
	}
	if first.len() < 400 || second.len() < 400 || small.len() != 20 {
		t.Errorf("%d, %d and %d entries", first.len(), second.len(), small.len())
	}
	first.clear()
	if first.add(testEntry(1)); first.len() != 0 {
		t.Error("a store takes entries after its end")
	}
	if b.largest() != second || b.used.Load() != second.octets.Load()+small.octets.Load() {
		t.Errorf("%d octets are counted, %d and %d used", b.used.Load(), second.octets.Load(), small.octets.Load())
	}
}

// A store that is not used any more is not counted, also if nobody has said so.
func TestForgottenStoresAreNotCounted(t *testing.T) {
	b := newBudget(1 << 30)
	newStore(100, b, 0).add(testEntry(1))
	eventually.Holds(t, "a collection", func() bool { runtime.GC(); return b.used.Load() == 0 && b.largest() == nil })
}

// A Corefile may have ten thousand blocks with a cache: each comes and goes without a look at all others.
func TestManyStoresJoinAndLeave(t *testing.T) {
	beside := func(others int) time.Duration {
		b, all := newBudget(1<<30), make([]*store, others)
		for i := range all {
			all[i] = &store{octets: new(atomic.Int64)}
			b.join(all[i])
		}
		best := time.Hour
		for range 10 {
			s, begin := &store{octets: new(atomic.Int64)}, time.Now()
			for range 100 {
				b.join(s)
				b.leave(s)
			}
			best = min(best, time.Since(begin))
		}
		runtime.KeepAlive(all)
		return best
	}
	if few, many := beside(10), beside(10_000); many > 20*few {
		t.Errorf("to join and leave takes %v beside few stores, and %v beside many", few, many)
	}
}

// scan asks c for n popular names that draw tells, and for once others between two of them that are asked for this one time. It returns the share of hits among
// the last half of the popular ones.
func scan(c *Cache, n int, draw func() uint32, once int) float64 {
	r := rand.New(rand.NewPCG(1, 2))
	var q wire.Query
	var w wire.Reply
	buf := make([]byte, 4096)
	hits, asked := 0, 0
	ask := func(label uint64) {
		packet := []byte("\x00\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x10________________\x07example\x03org\x00\x00\x01\x00\x01")
		const digits = "0123456789abcdef"
		for i := range 16 {
			packet[13+i] = digits[label>>(60-4*i)&15]
		}
		q.Parse(packet)
		q.Arrival = time.Now()
		w.Reset(buf)
		c.ServeWire(context.Background(), &w, &q)
	}
	for i := range n {
		for range once {
			ask(r.Uint64() | 1<<63)
		}
		ask(uint64(draw()))
		if i > n/2 {
			asked++
			if w.Writer() == "cache" {
				hits++
			}
		}
	}
	return float64(hits) / float64(asked)
}

// many answers everything, with one to three addresses.
type many struct{ source }

func (many) WireSelf() plugin.Handler { return many{} }

func (many) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	w.Begin(q)
	for i := range 1 + q.Hash()%3 {
		w.Addr(wire.Answer, q.Name(), 3600, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
	}
	w.SetWriter("many")
	return wire.Done
}

// resident is the octets of memory that the process has.
func resident(t *testing.T) int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skip("not known here")
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Skip("not known here")
	return 0
}

// While millions of names pass by that are asked for once, the process grows by the budget, and what is popular stays. CACHE_SCAN sets how many
// names, with a budget of 64 MiB then; by default it is a small scan, of which only what is live counts.
func TestScanStaysInBudget(t *testing.T) {
	names, most, large := 80000, int64(8<<20), false
	if text := os.Getenv("CACHE_SCAN"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		names, most, large = n, 64<<20, true
	}
	popular := uint32(min(names/30, 40000))
	b := newBudget(memory.Live(most))
	fresh := func() *Cache {
		c := New()
		c.Next = many{}
		c.prepare()
		c.stores = &stores{positive: newStore(1<<30, b, 0), negative: newStore(1<<30, b, 1), owner: c}
		return c
	}
	alone := fresh()
	want := scan(alone, names/2, zipfian(popular, 1), 0)
	alone.positive.clear()
	c := fresh()
	debug.FreeOSMemory()
	before, heap := resident(t), heapLive()
	hits := scan(c, names/2, zipfian(popular, 1), 2)
	grown, live := resident(t)-before, heapLive()-heap
	t.Logf("%d names, memory %d: %d entries, %d octets counted, %d live, the process grew by %d; %.3f hits, without others %.3f",
		names, most, c.positive.len(), b.used.Load(), live, grown, hits, want)
	if limit := b.limit.Load(); live > limit*11/10 || live < limit*7/10 {
		t.Errorf("%d octets live, the budget is %d", live, limit)
	}
	if large && grown > most*11/10 {
		t.Errorf("the process grew by %d, the budget is %d", grown, most)
	}
	if hits < want-0.04 {
		t.Errorf("%.3f of the popular names were there, %.3f without others", hits, want)
	}
	runtime.KeepAlive(c)
}

func heapLive() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
