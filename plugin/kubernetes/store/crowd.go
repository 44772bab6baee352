package store

import (
	"cmp"
	"slices"
)

// crowd is the records of one tag, where there are many of them: the pods of a node's network, the slices of
// a large service. In the slots they would be one long run, which each change would have to walk along.
// In a table of their own, by their ids, a change finds its record at once, and who asks
// for the hash looks at all of them, as he must.
//
// Crowds come and go only when the slots are built anew, so a reader has the records of a tag in slots or
// in a crowd, never in both. A table is built anew for them when the runs that
// were walked along would have paid for it.
type crowd[R any] struct {
	tag uint32
	in  *table[R]
}

// crowded is the length of a run that is made a crowd. A crowd of less than half of it is dissolved.
const crowded = 16

// crowd returns the records of the tag if they stand apart, else nil.
func (s *slots[R]) crowd(tag uint32) *crowd[R] {
	if len(s.crowds) == 0 {
		return nil
	}
	if at, ok := s.search(tag); ok {
		return &s.crowds[at]
	}
	return nil
}

func (s *slots[R]) search(tag uint32) (at int, ok bool) {
	return slices.BinarySearchFunc(s.crowds, tag, func(c crowd[R], tag uint32) int { return cmp.Compare(c.tag, tag) })
}

// everyone is a cursor before the first record.
func (c *crowd[R]) everyone() cursor[R] {
	s := c.in.live.Load()
	return cursor[R]{in: s, gone: c.in.gone, left: len(s.tag), all: true}
}

// pass notes a walk past records of the same tag, if it was a long one.
func (t *table[R]) pass(like int) {
	if like > crowded && t.id != nil {
		t.passed += like
	}
}

// largeCrowds returns the crowds of s, which may be nil, that are still large.
func (t *table[R]) largeCrowds(s *slots[R]) (large []crowd[R]) {
	if s == nil {
		return nil
	}
	for _, c := range s.crowds {
		if c.in.size >= crowded/2 {
			large = append(large, c)
			t.apart += c.in.size
		}
	}
	return large
}

// dissolve puts the records of those crowds of last into next that it does not have.
func (t *table[R]) dissolve(last, next *slots[R]) {
	for _, c := range last.crowds {
		if next.crowd(c.tag) == nil {
			c.in.each(func(_ uint32, r *R) { t.place(next, c.tag, r) })
		}
	}
}

// gather makes a crowd of the records in s that have the tag. No reader sees s yet.
func (t *table[R]) gather(s *slots[R], tag uint32) {
	in := new(table[R])
	for at := s.home(tag); s.tag[at].Load() != 0; at = (at + 1) & (len(s.tag) - 1) {
		if r := s.rec[at].Load(); s.tag[at].Load() == tag && r != t.gone {
			in.put(t.id(r), r)
			s.rec[at].Store(t.gone)
		}
	}
	at, _ := s.search(tag)
	s.crowds = slices.Insert(s.crowds, at, crowd[R]{tag, in})
	t.apart += in.size
}
