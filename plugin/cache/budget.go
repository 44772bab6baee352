package cache

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/memory"
)

// budget bounds the octets of all stores that share it. When it is used up, the store that holds most gives way.
type budget struct {
	limit atomic.Int64
	used  atomic.Int64

	mu     sync.Mutex
	stores map[weak.Pointer[store]]struct{} // guarded by mu; weak, as nobody says when a Cache that was not made by setup is not used any more
}

func newBudget(limit int64) *budget {
	b := &budget{stores: map[weak.Pointer[store]]struct{}{}}
	b.limit.Store(limit)
	return b
}

// processBudget is the budget of all caches of the process.
var processBudget = sync.OnceValue(func() *budget { return newBudget(live(new(want).octets(memory.Limit()))) })

// live is how many octets entries may have, so that the process grows by memory at most: Go's collector lets garbage grow beside them
// before it begins, by as much as GOGC says, and with its own data and spans that are not full all of that takes a tenth more
// (TestScanStaysInBudget measures it).
func live(memory int64) int64 {
	percent := dnsserver.GCPercent()
	if percent < 0 || percent >= 1000 { // as good as none: another limit holds then
		percent = 100
	}
	return int64(float64(memory) / 1.1 * 100 / float64(100+percent))
}

// set makes the budget one of so much memory of the process.
func (b *budget) set(memory int64) { b.limit.Store(live(memory)) }

// join makes s one of the stores that give way.
func (b *budget) join(s *store) {
	p := weak.Make(s)
	runtime.AddCleanup(s, func(octets *atomic.Int64) {
		b.used.Add(-octets.Swap(0))
		b.forget(p)
	}, s.octets)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stores[p] = struct{}{}
}

// leave ends that.
func (b *budget) leave(s *store) { b.forget(weak.Make(s)) }

func (b *budget) forget(p weak.Pointer[store]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.stores, p)
}

// over reports whether more is used than may be.
func (b *budget) over() bool { return b.used.Load() > b.limit.Load() }

// largest is the store that holds most, nil if there is none.
func (b *budget) largest() (s *store) {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := int64(-1)
	for p := range b.stores {
		if o := p.Value(); o != nil && o.octets.Load() > most {
			s, most = o, o.octets.Load()
		}
	}
	return s
}
