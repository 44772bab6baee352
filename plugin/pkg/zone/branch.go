package zone

import (
	"cmp"
	"slices"
)

// branch is a node of a tree that has the names of a zone in canonical order (RFC 4034 §6.1), and that versions of the
// zone share: a change copies the branches on the way to a name, and no others. Leaves hold names, as the first eight
// octets of their labels and the places of their nodes, as order.go has them; other branches hold the first name
// of each branch below.
//
// A branch belongs to the version that it was made for, and is written by that one's Change only.
type branch struct {
	below  *[branchSize]*branch // nil in a leaf; it stands first, as the collector looks no further than pointers go
	by     uint64
	n      int
	keys   [branchSize]uint64
	places [branchSize]uint32
}

// branchSize is how many names a leaf has at most. With 32, a million names have five floors, and a change copies about
// three kilobytes; with more it copies more, with fewer there are more floors to search.
const branchSize = 32

// newTree is a tree of names in order.
func newTree(all []keyed, by uint64) *branch {
	const fill = branchSize * 3 / 4 // room for some more
	var level []*branch
	for part := range slices.Chunk(all, fill) {
		b := &branch{by: by, n: len(part)}
		for i, k := range part {
			b.keys[i], b.places[i] = k.key, k.place
		}
		level = append(level, b)
	}
	for len(level) > 1 {
		var up []*branch
		for part := range slices.Chunk(level, fill) {
			b := &branch{by: by, n: len(part), below: new([branchSize]*branch)}
			for i, c := range part {
				b.keys[i], b.places[i], b.below[i] = c.keys[0], c.places[0], c
			}
			up = append(up, b)
		}
		level = up
	}
	if len(level) == 0 {
		return &branch{by: by}
	}
	return level[0]
}

// search is the number of names of the branch, or first names of branches below, that are not behind a name; exact
// tells whether the last of them is the name.
func (b *branch) search(z *Zone, key uint64, prefix []byte) (n int, exact bool) {
	lo, hi := 0, b.n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		order := cmp.Compare(b.keys[mid], key)
		if order == 0 {
			if order = compare(z.at(b.places[mid]).prefix(), prefix); order == 0 {
				return mid + 1, true
			}
		}
		if order < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, false
}

// own is a branch that a version may write to: b, or a copy.
func (b *branch) own(by uint64) *branch {
	if b.by == by {
		return b
	}
	c := *b
	c.by = by
	if b.below != nil {
		below := *b.below
		c.below = &below
	}
	return &c
}

// set makes a name stand at a place. It returns the tree, and the second half of it if it was split.
func (b *branch) set(z *Zone, k keyed, prefix []byte, by uint64) (left, right *branch) {
	// Whatever is on the way to the name is another one in the next version.
	b = b.own(by)
	i, exact := b.search(z, k.key, prefix)
	if b.below == nil {
		if exact {
			b.places[i-1] = k.place
			return b, nil
		}
		return b.insert(i, k, nil)
	}
	// A name before all others goes into the first branch, whose first name put makes known here.
	at := max(i-1, 0)
	first, second := b.below[at].set(z, k, prefix, by)
	b.put(at, first)
	if second == nil {
		return b, nil
	}
	return b.insert(at+1, keyed{second.keys[0], second.places[0]}, second)
}

// put makes c the i-th branch below.
func (b *branch) put(i int, c *branch) {
	b.keys[i], b.places[i], b.below[i] = c.keys[0], c.places[0], c
}

// insert puts a name, or a branch below, at i; the branch is split if it is full.
func (b *branch) insert(i int, k keyed, below *branch) (left, right *branch) {
	if b.n == branchSize {
		right = b.split()
		if i > b.n {
			right.insert(i-b.n, k, below)
			return b, right
		}
	}
	copy(b.keys[i+1:b.n+1], b.keys[i:b.n])
	copy(b.places[i+1:b.n+1], b.places[i:b.n])
	b.keys[i], b.places[i] = k.key, k.place
	if b.below != nil {
		copy(b.below[i+1:b.n+1], b.below[i:b.n])
		b.below[i] = below
	}
	b.n++
	return b, right
}

// split gives the second half away. Names mostly come in order, or anywhere.
func (b *branch) split() *branch {
	const half = branchSize / 2
	r := &branch{by: b.by}
	if b.below != nil {
		r.below = new([branchSize]*branch)
	}
	r.take(b, half, b.n)
	b.cut(half)
	return r
}

// take appends what stands in c from lo to hi.
func (b *branch) take(c *branch, lo, hi int) {
	copy(b.keys[b.n:], c.keys[lo:hi])
	copy(b.places[b.n:], c.places[lo:hi])
	if b.below != nil {
		copy(b.below[b.n:], c.below[lo:hi])
	}
	b.n += hi - lo
}

// cut leaves n.
func (b *branch) cut(n int) {
	if b.below != nil {
		clear(b.below[n:])
	}
	b.n = n
}

// remove takes a name away that is there. It returns the tree, which may be empty.
func (b *branch) remove(z *Zone, key uint64, prefix []byte, by uint64) *branch {
	b = b.own(by)
	i, _ := b.search(z, key, prefix)
	at := max(i-1, 0)
	if b.below == nil {
		b.drop(at)
		return b
	}
	c := b.below[at].remove(z, key, prefix, by)
	if c.n == 0 {
		b.drop(at)
		return b
	}
	b.put(at, c)
	// Branches that have become small are joined, so that the tree is not larger than what it holds.
	if c.n < branchSize/4 {
		b.join(at, by)
	}
	return b
}

// shrunk is the tree without floors that have one branch only.
func (b *branch) shrunk() *branch {
	for b.below != nil && b.n == 1 {
		b = b.below[0]
	}
	return b
}

// drop takes the i-th away.
func (b *branch) drop(i int) {
	copy(b.keys[i:], b.keys[i+1:b.n])
	copy(b.places[i:], b.places[i+1:b.n])
	if b.below != nil {
		copy(b.below[i:], b.below[i+1:b.n])
	}
	b.cut(b.n - 1)
}

// join makes one branch of the i-th below and a neighbour, if there is room.
func (b *branch) join(i int, by uint64) {
	if i == b.n-1 {
		i--
	}
	if i < 0 || b.below[i].n+b.below[i+1].n > branchSize*3/4 {
		return
	}
	c := b.below[i].own(by)
	c.take(b.below[i+1], 0, b.below[i+1].n)
	b.put(i, c)
	b.drop(i + 1)
}

// grow makes one tree of the two that set returned.
func grow(left, right *branch, by uint64) *branch {
	if right == nil {
		return left
	}
	up := &branch{by: by, n: 2, below: new([branchSize]*branch)}
	up.put(0, left)
	up.put(1, right)
	return up
}

// each calls f with the places of all names that are not before a name, nil for the apex, in order, until it returns
// false.
func (b *branch) each(z *Zone, from []byte, f func(place uint32) bool) bool {
	// On the way down only the first branch of each floor has names before from.
	i := 0
	if len(from) > 0 {
		n, exact := b.search(z, keyOf(from), from)
		if i = n; exact || b.below != nil {
			i = max(n-1, 0)
		}
	}
	for ; i < b.n; i++ {
		if b.below == nil {
			if !f(b.places[i]) {
				return false
			}
		} else if !b.below[i].each(z, from, f) {
			return false
		}
		from = nil
	}
	return true
}

// back calls f with the places of all names that are not behind a name, the last one first, until it returns false.
func (b *branch) back(z *Zone, key uint64, from []byte, f func(place uint32) bool) bool {
	n := b.n
	if from != nil {
		n, _ = b.search(z, key, from)
	}
	for i := n - 1; i >= 0; i-- {
		if b.below == nil {
			if !f(b.places[i]) {
				return false
			}
			continue
		}
		if !b.below[i].back(z, key, from, f) {
			return false
		}
		from = nil
	}
	return true
}
