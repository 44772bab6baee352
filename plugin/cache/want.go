package cache

import (
	"sync"

	"github.com/coredns/caddy"
)

// want is how much memory the server blocks of a configuration want for all caches of the process.
type want struct {
	memory  int64 // octets, as the first block says that says it; 0: none does
	entries int64 // that classes are told to keep beyond defaultCapacity
	warned  sync.Once
}

// Memory that caches may take if the Corefile does not say: a part of what the process may use, and no more than
// mostMemory, or what the entries need that classes are told to keep.
const (
	mostMemory  = 64 << 20
	memoryShare = 4
	perEntry    = 560 // of the process for one entry, about: 120,000 take mostMemory
)

// wantKey is what the want of a configuration is found by in it.
type wantKey struct{}

// wantOf is the want of the configuration that c sets up, with that of one more cache.
func wantOf(c *caddy.Controller, s *settings) *want {
	w, ok := c.Get(wantKey{}).(*want)
	if !ok {
		w = new(want)
		c.Set(wantKey{}, w)
	}
	if w.memory == 0 {
		w.memory = s.memory
	}
	for _, capacity := range []int{s.success.capacity, s.denial.capacity} {
		w.entries += max(0, int64(capacity)-defaultCapacity)
	}
	return w
}

// octets is the memory for all caches of a process that may use limit octets.
func (w *want) octets(limit int64) int64 {
	if w.memory != 0 {
		return w.memory
	}
	return min(max(mostMemory, w.needed()), limit/memoryShare)
}

// needed is the octets for all entries.
func (w *want) needed() int64 { return w.entries * perEntry }

// warn tells, once, if entries that classes are told to keep have no room.
func (w *want) warn(limit int64) {
	got := w.octets(limit)
	if w.memory != 0 || w.needed() <= got {
		return
	}
	w.warned.Do(func() {
		clog.Warningf("%d entries, as success and denial say, take about %d MiB, and all caches together may take %d, a quarter of what the process "+
			"may use: some %d will be kept, unless memory says more", w.entries+defaultCapacity, w.needed()>>20, got>>20, got/perEntry)
	})
}
