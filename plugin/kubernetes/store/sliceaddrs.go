package store

import "sync/atomic"

// This file leads from addresses to slices. What stands in the table is no slice, which is a new record with each
// change, but what leads to its present version: so of a thousand addresses only those are touched that come or go.

// sliceRef leads to the present version of a slice, which may have an address no more, or not yet, under which the
// sliceRef stands in the table: who looks up compares.
type sliceRef struct{ now atomic.Pointer[Slice] }

// reindexAddrs puts next in the place of old; either may be nil. A slice has each of its addresses once in the table.
func (w *sliceWriter) reindexAddrs(old, next *Slice) {
	was, is := old.endpoints(), next.endpoints()
	same, tail := alike(was, is)
	few := len(was)+len(is)-2*(same+tail) <= fewAddrs
	w.had.fill(was, few)
	w.has.fill(is, few)
	if next != nil {
		if old != nil {
			next.ref = old.ref
		} else {
			next.ref = new(sliceRef)
			next.ref.now.Store(next)
		}
		for i := same; i < len(is)-tail; i++ {
			if a := is[i].addr; !w.had.holds(a) && w.has.first(i) {
				w.byIP.put(hash16(a), next.ref)
			}
		}
		next.ref.now.Store(next)
	}
	for i := same; i < len(was)-tail; i++ {
		if a := was[i].addr; !w.has.holds(a) { // once; the next time there is nothing to remove
			w.byIP.remove(hash16(a), old.ref)
		}
	}
}
