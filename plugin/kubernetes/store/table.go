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
// A slot costs 12 bytes, and at least 3 in 8 of them are in use after growing. Records of which very many
// have one hash stand apart: see crowd.
type table[R any] struct {
	live   atomic.Pointer[slots[R]] // nil until the first put
	gone   *R                       // stands where a record was taken out
	used   int                      // slots with a record or gone; writer only
	size   int                      // records; writer only
	apart  int                      // those of them that are in crowds; writer only
	passed int                      // records passed in long runs since the table was built; writer only

	// id tells the records of one hash apart; it stays as it is when a record is swapped. Without
	// it there are no crowds.
	id func(*R) uint64
}

type slots[R any] struct {
	tag    []atomic.Uint32 // 0: never used
	rec    []atomic.Pointer[R]
	crowds []crowd[R] // by tag; those that have one are not in the slots
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
	left int  // slots not looked at yet
	all  bool // whatever the tag
}

// find returns a cursor before the first record that was put in under hash.
func (t *table[R]) find(hash uint64) cursor[R] {
	s := t.live.Load()
	if s == nil {
		return cursor[R]{}
	}
	tag := tagOf(hash)
	if c := s.crowd(tag); c != nil {
		return c.everyone()
	}
	return cursor[R]{in: s, gone: t.gone, tag: tag, at: s.home(tag), left: len(s.tag)}
}

// next returns the next record, or nil after the last.
func (c *cursor[R]) next() *R {
	for c.left > 0 {
		at, tag := c.at, c.in.tag[c.at].Load()
		if tag == 0 && !c.all {
			c.left = 0
			return nil
		}
		c.at, c.left = (at+1)&(len(c.in.tag)-1), c.left-1
		if tag != c.tag && !c.all {
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
	if s == nil || (t.used+1)*4 > len(s.tag)*3 || t.passed > len(s.tag) {
		s = t.rebuild()
	}
	t.insert(s, tagOf(hash), r)
	t.size++
}

// insert puts r into its crowd, or into a slot.
func (t *table[R]) insert(s *slots[R], tag uint32, r *R) (like int) {
	if c := s.crowd(tag); c != nil {
		c.in.put(t.id(r), r)
		t.apart++
		return 0
	}
	return t.place(s, tag, r)
}

// place puts r into the first slot from its home on that has no record. It tells how many
// records of the same tag it passed.
func (t *table[R]) place(s *slots[R], tag uint32, r *R) (like int) {
	for at := s.home(tag); ; at = (at + 1) & (len(s.tag) - 1) {
		switch old := s.rec[at].Load(); old {
		case nil:
			t.used++
			s.rec[at].Store(r)
			s.tag[at].Store(tag)
			t.pass(like)
			return like
		case t.gone:
			s.tag[at].Store(tag)
			s.rec[at].Store(r)
			t.pass(like)
			return like
		}
		if s.tag[at].Load() == tag {
			like++
		}
	}
}

// swap puts r in the place of old, which was put in under the same hash and has the same id. A
// reader finds one or the other.
func (t *table[R]) swap(hash uint64, old, r *R) bool {
	s := t.live.Load()
	if s == nil {
		return false
	}
	tag := tagOf(hash)
	if c := s.crowd(tag); c != nil {
		return c.in.swap(t.id(old), old, r)
	}
	like := 0
	for n, at := 0, s.home(tag); n < len(s.tag) && s.tag[at].Load() != 0; n, at = n+1, (at+1)&(len(s.tag)-1) {
		if s.tag[at].Load() != tag {
			continue
		}
		if s.rec[at].Load() == old {
			s.rec[at].Store(r)
			t.pass(like)
			return true
		}
		like++
	}
	return false
}

// remove takes r out, which was put in under hash.
func (t *table[R]) remove(hash uint64, r *R) {
	s := t.live.Load()
	if s == nil {
		return
	}
	if c := s.crowd(tagOf(hash)); c != nil {
		before := c.in.size
		c.in.remove(t.id(r), r)
		t.size -= before - c.in.size
		t.apart -= before - c.in.size
		return
	}
	if t.swap(hash, r, t.gone) {
		t.size--
	}
}

// rebuild makes room for one more: slots for twice the records that there are, without those that are gone.
func (t *table[R]) rebuild() *slots[R] {
	if t.gone == nil {
		t.gone = new(R)
	}
	t.used, t.passed, t.apart = 0, 0, 0
	last := t.live.Load()
	next := &slots[R]{crowds: t.largeCrowds(last)}
	n := minSlots
	for n*3 < (t.size-t.apart+1)*5 { // at most 3 in 5 in use, so that growing is rare
		n *= 2
	}
	next.tag, next.rec = make([]atomic.Uint32, n), make([]atomic.Pointer[R], n)
	if last != nil {
		last.each(t.gone, func(tag uint32, r *R) {
			if t.insert(next, tag, r) > crowded && t.id != nil {
				t.gather(next, tag)
			}
		})
		t.dissolve(last, next)
	}
	t.passed = 0
	t.live.Store(next)
	return next
}

// each calls f with every record and its tag. f must not change the table.
func (t *table[R]) each(f func(tag uint32, r *R)) {
	s := t.live.Load()
	if s == nil {
		return
	}
	s.each(t.gone, f)
	for _, c := range s.crowds {
		c.in.each(func(_ uint32, r *R) { f(c.tag, r) })
	}
}

// each calls f with every record in the slots.
func (s *slots[R]) each(gone *R, f func(tag uint32, r *R)) {
	for at := range s.tag {
		if r := s.rec[at].Load(); r != nil && r != gone {
			f(s.tag[at].Load(), r)
		}
	}
}
