package cache

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

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
var processBudget = sync.OnceValue(func() *budget { return newBudget(memory.Live(new(want).octets(memory.Limit()))) })

// set makes the budget one of so much memory of the process.
func (b *budget) set(process int64) { b.limit.Store(memory.Live(process)) }

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
