package store

import "sync/atomic"

// table finds records by the hash of a key. It is read by any number of goroutines without a
// lock while one goroutine writes to it.
//
//	slot:   0     1        2     3        4     5
//	tag:    -     7f3a     7f3a  19c0     -     -      the hash that the record was put in under
//	rec:    nil   *Slice   gone  *Slice   nil   nil
//
// It holds pointers and hashes, no keys: several records may have one hash, be it because they
// share the key (the slices of a service), be it by chance. So who looks up compares what he
// gets with the key. A slot that was used once stays used until the table is built anew, so that
// a reader on his way along the slots never stops too early; what he sees of a change that
// happens meanwhile is the record from before it or from after it.
//
// A slot costs 12 bytes, and at least 3 in 8 of them are in use after growing.
type table[R any] struct {
	live atomic.Pointer[slots[R]] // nil until the first put
	gone *R                       // stands where a record was taken out
	used int                      // slots with a record or gone; writer only
	size int                      // records; writer only
}

type slots[R any] struct {
	tag []atomic.Uint32 // 0: never used
	rec []atomic.Pointer[R]
}

const minSlots = 8

// tagOf makes a slot's tag of a hash: never 0, with the home slot in its upper bits.
func tagOf(hash uint64) uint32 { return uint32(hash>>32) | 1 }

func (s *slots[R]) home(tag uint32) int { return int(tag>>1) & (len(s.tag) - 1) }

// cursor walks over the records of one hash.
type cursor[R any] struct {
	in   *slots[R]
	gone *R
	tag  uint32
	at   int
	left int // slots not looked at yet
}

// find returns a cursor before the first record that was put in under hash.
func (t *table[R]) find(hash uint64) cursor[R] {
	s := t.live.Load()
	if s == nil {
		return cursor[R]{}
	}
	tag := tagOf(hash)
	return cursor[R]{in: s, gone: t.gone, tag: tag, at: s.home(tag), left: len(s.tag)}
}

// next returns the next record, or nil after the last.
func (c *cursor[R]) next() *R {
	for c.left > 0 {
		at, tag := c.at, c.in.tag[c.at].Load()
		if tag == 0 {
			c.left = 0
			return nil
		}
		c.at, c.left = (at+1)&(len(c.in.tag)-1), c.left-1
		if tag != c.tag {
			continue
		}
		if r := c.in.rec[at].Load(); r != nil && r != c.gone {
			return r
		}
	}
	return nil
}

// put adds r under hash.
func (t *table[R]) put(hash uint64, r *R) {
	s := t.live.Load()
	if s == nil || (t.used+1)*4 > len(s.tag)*3 {
		s = t.rebuild()
	}
	t.place(s, tagOf(hash), r)
	t.size++
}

// place puts r into the first slot from its home on that has no record.
func (t *table[R]) place(s *slots[R], tag uint32, r *R) {
	for at := s.home(tag); ; at = (at + 1) & (len(s.tag) - 1) {
		switch old := s.rec[at].Load(); old {
		case nil:
			t.used++
			s.rec[at].Store(r)
			s.tag[at].Store(tag)
			return
		case t.gone:
			s.tag[at].Store(tag)
			s.rec[at].Store(r)
			return
		}
	}
}

// swap puts r in the place of old, which was put in under the same hash. A
// reader finds one or the other.
func (t *table[R]) swap(hash uint64, old, r *R) bool {
	s := t.live.Load()
	if s == nil {
		return false
	}
	tag := tagOf(hash)
	for n, at := 0, s.home(tag); n < len(s.tag) && s.tag[at].Load() != 0; n, at = n+1, (at+1)&(len(s.tag)-1) {
		if s.rec[at].Load() == old && s.tag[at].Load() == tag {
			s.rec[at].Store(r)
			return true
		}
	}
	return false
}

// remove takes r out, which was put in under hash.
func (t *table[R]) remove(hash uint64, r *R) {
	if t.swap(hash, r, t.gone) {
		t.size--
	}
}

// rebuild makes room for one more: slots for twice the records that there are, without those that are gone.
func (t *table[R]) rebuild() *slots[R] {
	if t.gone == nil {
		t.gone = new(R)
	}
	n := minSlots
	for n*3 < (t.size+1)*5 { // at most 3 in 5 in use, so that growing is rare
		n *= 2
	}
	next := &slots[R]{tag: make([]atomic.Uint32, n), rec: make([]atomic.Pointer[R], n)}
	t.used = 0
	t.each(func(tag uint32, r *R) { t.place(next, tag, r) })
	t.live.Store(next)
	return next
}

// each calls f with every record and its tag. f must not change the table.
func (t *table[R]) each(f func(tag uint32, r *R)) {
	s := t.live.Load()
	if s == nil {
		return
	}
	for at := range s.tag {
		if r := s.rec[at].Load(); r != nil && r != t.gone {
			f(s.tag[at].Load(), r)
		}
	}
}
