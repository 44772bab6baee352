package cache

import "sync/atomic"

// table finds entries by hash, with open addressing. Its slots are written under the
// shard's lock and read without; a slot once filled is never emptied, only marked.
type table struct {
	slots  []atomic.Pointer[entry]
	filled int // slots that are not nil
}

// removed marks a slot whose entry went.
var removed = &entry{}

func newTable(size int) *table { return &table{slots: make([]atomic.Pointer[entry], size)} }

// slot is where the search for a hash begins. The low bits chose the shard.
func (t *table) slot(hash uint64) int { return int(hash/shards) & (len(t.slots) - 1) }

func (t *table) find(k *key) *entry {
	for i := t.slot(k.hash); ; i = (i + 1) & (len(t.slots) - 1) {
		e := t.slots[i].Load()
		if e == nil {
			return nil
		}
		if e.is(k) && e != removed {
			return e
		}
	}
}

// insert puts in an entry whose key is not there. There must be an empty slot left.
func (t *table) insert(e *entry) {
	i := t.slot(e.hash)
	for {
		old := t.slots[i].Load()
		if old == nil {
			t.filled++
		}
		if old == nil || old == removed {
			t.slots[i].Store(e)
			return
		}
		i = (i + 1) & (len(t.slots) - 1)
	}
}

// replace puts e where old is.
func (t *table) replace(old, e *entry) {
	for i := t.slot(old.hash); ; i = (i + 1) & (len(t.slots) - 1) {
		if t.slots[i].Load() == old {
			t.slots[i].Store(e)
			return
		}
	}
}

// rebuilt is a table with the same entries, room for as many again, and no marks.
func (t *table) rebuilt(live int) *table {
	size := 16
	for size < live*3 {
		size *= 2
	}
	fresh := newTable(size)
	for i := range t.slots {
		if e := t.slots[i].Load(); e != nil && e != removed {
			fresh.insert(e)
		}
	}
	return fresh
}
