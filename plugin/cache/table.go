package cache

import "sync/atomic"

// table finds entries by hash, with open addressing. Its slots are written under the
// shard's lock and read without; a slot behind which others are filled is not emptied, only marked.
type table struct{ slots []slot }

// slot has the tag of an entry beside it, so that a search looks at no other entries than the one it is for, in nearly all cases.
// A new entry is written before its tag: who sees an old one with it goes on.
type slot struct {
	tag   atomic.Uint64 // tagOf the entry's hash, 0 of an empty slot
	entry atomic.Pointer[entry]
}

// removed marks a slot whose entry went.
var removed = &entry{}

// noEntries is the table of all shards that have had no entry yet. It has no room: a shard makes its own first.
var noEntries = newTable(1)

func newTable(size int) *table { return &table{slots: make([]slot, size)} }

// tagOf is what stands for a hash. The low bits chose the shard, and are the same for all.
func tagOf(hash uint64) uint64 { return hash | 1 }

// first is where the search for a hash begins.
func (t *table) first(hash uint64) int { return int(hash/shards) & (len(t.slots) - 1) }

// next is where it goes on.
func (t *table) next(i int) int { return (i + 1) & (len(t.slots) - 1) }

func (t *table) find(k *key) *entry {
	tag := tagOf(k.hash)
	for i := t.first(k.hash); ; i = t.next(i) {
		switch t.slots[i].tag.Load() {
		case 0:
			return nil
		case tag:
			if e := t.slots[i].entry.Load(); e != removed && e.is(k) {
				return e
			}
		}
	}
}

// findHash is an entry of a hash, nil if there is none.
func (t *table) findHash(hash uint64) *entry {
	for i := t.first(hash); ; i = t.next(i) {
		switch t.slots[i].tag.Load() {
		case 0:
			return nil
		case tagOf(hash):
			if e := t.slots[i].entry.Load(); e != removed {
				return e
			}
		}
	}
}

// insert puts in an entry whose key is not there, and reports whether that took an empty slot. There must be one left.
func (t *table) insert(e *entry) (filled bool) { return t.place(tagOf(e.hash), e) }

// place is insert of an entry with a tag.
func (t *table) place(tag uint64, e *entry) (filled bool) {
	for i := t.first(tag); ; i = t.next(i) { // where a search begins does not depend on the one bit of the hash that the tag lacks
		s := &t.slots[i]
		empty := s.tag.Load() == 0
		if empty || s.entry.Load() == removed {
			s.entry.Store(e)
			s.tag.Store(tag)
			return empty
		}
	}
}

// replace puts e, which has the same key, where old is.
func (t *table) replace(old, e *entry) { t.slots[t.at(old)].entry.Store(e) }

// at is the slot that e is in.
func (t *table) at(e *entry) int {
	i := t.first(e.hash)
	for t.slots[i].entry.Load() != e {
		i = t.next(i)
	}
	return i
}

// remove takes e out, and returns how many slots that has emptied: where no search goes on, marks are of no use.
func (t *table) remove(e *entry) (emptied int) {
	i := t.at(e)
	t.slots[i].entry.Store(removed)
	if t.slots[t.next(i)].tag.Load() != 0 {
		return 0
	}
	for t.slots[i].entry.Load() == removed && t.slots[i].tag.Load() != 0 {
		t.slots[i].tag.Store(0)
		emptied++
		i = (i - 1) & (len(t.slots) - 1)
	}
	return emptied
}

// rebuilt is a table with the same entries, room for more, and no marks. It goes by the tags, and does not look at the entries, which are
// scattered over the memory.
func (t *table) rebuilt(live int) *table {
	size := 16
	for size < live*5/2 {
		size *= 2
	}
	fresh := newTable(size)
	for i := range t.slots {
		s := &t.slots[i]
		if e := s.entry.Load(); e != nil && e != removed {
			fresh.place(s.tag.Load(), e)
		}
	}
	return fresh
}

// all calls yield with each entry, until that reports false. Entries may be replaced meanwhile.
func (t *table) all(yield func(*entry) bool) {
	for i := range t.slots {
		if e := t.slots[i].entry.Load(); e != nil && e != removed && !yield(e) {
			return
		}
	}
}
