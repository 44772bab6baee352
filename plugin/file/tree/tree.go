// Package tree keeps the records of a zone by name, in canonical order (RFC 4034 §6.1), for programs that put zones
// together, walk and change them record by record.
//
//	Insert, Delete ──▶ Tree ──▶ Elem: the records of one name
//	                    │
//	                    └─Changes─▶ who serves it: made into an immutable zone when it is asked again (package file)
//
// A Tree and its Elems may be used by any number of goroutines, but for the exported fields, which only tests look at.
// What is returned are copies, but for the records themselves, which must not be changed. The zero Tree is empty
// and ready. Names are in presentation form; their case does not count.
//
// It is a left-leaning red-black tree (balance.go). Start at Tree.Insert and Tree.Walk.
package tree

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Tree is names with their records.
type Tree struct {
	Root  *Node // of the search tree, nil if it is empty
	Count int   // names

	guard guard
}

// guard is what a Tree and its Elems share.
type guard struct {
	mu      sync.RWMutex // of all records, and of the tree
	changes atomic.Uint64
}

// Changes counts how often the tree or its records were changed.
func (t *Tree) Changes() uint64 { return t.guard.changes.Load() }

// Len is the number of names.
func (t *Tree) Len() int {
	t.guard.mu.RLock()
	defer t.guard.mu.RUnlock()
	return t.Count
}

// Insert adds a record at its owner. The tree keeps rr.
func (t *Tree) Insert(rr dns.RR) {
	t.guard.mu.Lock()
	defer t.guard.mu.Unlock()
	key := keyOf(rr.Header().Name)
	e := t.find(key)
	if e == nil {
		e = &Elem{name: rr.Header().Name, key: key, sets: map[uint16][]dns.RR{}, guard: &t.guard}
		t.Root = t.Root.insert(e)
		t.Root.Color = Black
		t.Count++
	}
	e.insert(rr)
	t.guard.changes.Add(1)
}

// Delete takes away all records of rr's type at rr's owner, and the name if it has none left.
func (t *Tree) Delete(rr dns.RR) {
	t.guard.mu.Lock()
	defer t.guard.mu.Unlock()
	key := keyOf(rr.Header().Name)
	e := t.find(key)
	if e == nil {
		return
	}
	delete(e.sets, rr.Header().Rrtype)
	if len(e.sets) == 0 {
		t.remove(key)
	}
	t.guard.changes.Add(1)
}

// DeleteMin takes away the first name with all of its records, DeleteMax the last one.
func (t *Tree) DeleteMin() { t.deleteAt((*Node).first) }
func (t *Tree) DeleteMax() { t.deleteAt((*Node).last) }

func (t *Tree) deleteAt(end func(*Node) *Node) {
	t.guard.mu.Lock()
	defer t.guard.mu.Unlock()
	if t.Root == nil {
		return
	}
	t.remove(end(t.Root).Elem.key)
	t.guard.changes.Add(1)
}

// Search is the name's Elem, and whether there is one.
func (t *Tree) Search(qname string) (*Elem, bool) {
	t.guard.mu.RLock()
	defer t.guard.mu.RUnlock()
	e := t.find(keyOf(qname))
	return e, e != nil
}

// Prev is the Elem of the name, or of the last one before it; Next, of the name or the first one behind it.
func (t *Tree) Prev(qname string) (*Elem, bool) { return t.near(qname, -1) }
func (t *Tree) Next(qname string) (*Elem, bool) { return t.near(qname, 1) }

func (t *Tree) near(qname string, side int) (best *Elem, ok bool) {
	t.guard.mu.RLock()
	defer t.guard.mu.RUnlock()
	key := keyOf(qname)
	for n := t.Root; n != nil; {
		order := compare(n.Elem.key, key)
		if order == 0 {
			return n.Elem, true
		}
		if order*side > 0 {
			best = n.Elem
		}
		if order < 0 {
			n = n.Right
		} else {
			n = n.Left
		}
	}
	return best, best != nil
}

// Min is the first name's Elem, Max the last one's; nil if there is none.
func (t *Tree) Min() *Elem { return t.end((*Node).first) }
func (t *Tree) Max() *Elem { return t.end((*Node).last) }

func (t *Tree) end(end func(*Node) *Node) *Elem {
	t.guard.mu.RLock()
	defer t.guard.mu.RUnlock()
	if t.Root == nil {
		return nil
	}
	return end(t.Root).Elem
}

// All is the Elems of all names in order.
func (t *Tree) All() []*Elem {
	t.guard.mu.RLock()
	defer t.guard.mu.RUnlock()
	return t.Root.appendAll(make([]*Elem, 0, t.Count))
}

// Print writes the tree to standard output, a line for each name with its types.
func (t *Tree) Print() {
	for _, e := range t.All() {
		fmt.Print(e.Name())
		for _, typ := range e.Types() {
			fmt.Print(" ", dns.Type(typ))
		}
		fmt.Println()
	}
}

func (t *Tree) find(key []byte) *Elem {
	for n := t.Root; n != nil; {
		switch order := compare(key, n.Elem.key); {
		case order == 0:
			return n.Elem
		case order < 0:
			n = n.Left
		default:
			n = n.Right
		}
	}
	return nil
}

// Less compares a name with that of an Elem in canonical order: it is negative, zero or positive as name is
// before, equal to or behind it.
func Less(a *Elem, name string) int { return compare(keyOf(name), a.key) }

// keyOf is a name in lower case and wire form. What cannot be a name is kept as it stands, behind an octet
// that no name begins with.
func keyOf(name string) []byte {
	key, err := wire.LowerName(name)
	if err != nil {
		return append([]byte{0xff}, name...)
	}
	return key
}

func compare(a, b []byte) int {
	if a[0] == 0xff || b[0] == 0xff {
		switch {
		case string(a) < string(b):
			return -1
		case string(a) > string(b):
			return 1
		}
		return 0
	}
	return wire.Compare(a, b)
}
