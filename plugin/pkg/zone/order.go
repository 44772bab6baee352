package zone

import (
	"cmp"
	"iter"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Canonical order (RFC 4034 §6.1) is by labels from the apex downwards. A name's key is the first eight octets of
// its labels in that order, so that most comparisons are of two numbers that stand together in memory; each 64th key
// stands among others like it, so that a search leaves the processor's caches a few times only.

// chain is nodes in canonical order.
type chain struct {
	keys   []uint64
	tops   []uint64 // each stride-th of keys
	places []uint32
}

const stride = 64

// before is the last node of the chain that is not behind a name, and whether it is the name's own.
// It is nil if all are behind it.
func (c *chain) before(z *Zone, prefix []byte) (n Node, exact bool) {
	key := keyOf(prefix)
	top, exact := c.search(z, c.tops, stride, 0, len(c.tops), key, prefix)
	if exact {
		return z.at(c.places[top*stride]), true
	}
	if top == 0 {
		return nil, false
	}
	at, exact := c.search(z, c.keys, 1, (top-1)*stride+1, min(top*stride, len(c.keys)), key, prefix)
	if !exact {
		at--
	}
	return z.at(c.places[at]), exact
}

// search is the first of keys from lo to hi that is behind a name, or the one that is the name's own. The i-th key is
// that of node i*step.
func (c *chain) search(z *Zone, keys []uint64, step, lo, hi int, key uint64, prefix []byte) (i int, exact bool) {
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		order := cmp.Compare(keys[mid], key)
		if order == 0 {
			if order = compare(z.at(c.places[mid*step]).prefix(), prefix); order == 0 {
				return mid, true
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

// last is the chain's last node.
func (c *chain) last(z *Zone) Node { return z.at(c.places[len(c.places)-1]) }

// newChain sorts nodes. Files that a signer wrote are mostly in order already, which takes no time then.
func newChain(z *Zone, places []uint32) chain {
	keys := inOrder(z, places)
	c := chain{keys: make([]uint64, len(keys)), places: make([]uint32, len(keys))}
	for i, k := range keys {
		c.keys[i], c.places[i] = k.key, k.place
		if i%stride == 0 {
			c.tops = append(c.tops, k.key)
		}
	}
	return c
}

// keyed is a node with its key.
type keyed struct {
	key   uint64
	place uint32
}

// inOrder is nodes in canonical order.
func inOrder(z *Zone, places []uint32) []keyed {
	all := make([]keyed, len(places))
	for i, p := range places {
		all[i] = keyed{keyOf(z.at(p).prefix()), p}
	}
	slices.SortFunc(all, func(a, b keyed) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return compare(z.at(a.place).prefix(), z.at(b.place).prefix())
	})
	return all
}

// ordered is the places of all nodes in canonical order.
func (z *Zone) ordered() []uint32 {
	z.orderOnce.Do(func() {
		if z.grown != nil {
			z.order = z.inTree()
			z.sorted.Store(true)
			return
		}
		all := inOrder(z, z.places())
		z.order = make([]uint32, len(all))
		for i, k := range all {
			z.order[i] = k.place
		}
		z.sorted.Store(true)
	})
	return z.order
}

// Nodes is all names with their nodes in canonical order, empty non-terminals too. A name holds until the next one.
func (z *Zone) Nodes() iter.Seq2[[]byte, Node] {
	return func(yield func([]byte, Node) bool) {
		var name []byte
		for _, place := range z.ordered() {
			n := z.at(place)
			name = append(append(name[:0], n.prefix()...), z.origin...)
			if !yield(name, n) {
				return
			}
		}
	}
}

// places is the places of all nodes, in the order in which they lie in memory.
func (z *Zone) places() []uint32 {
	if z.grown != nil {
		places := z.inTree()
		slices.Sort(places)
		return places
	}
	places := make([]uint32, 0, z.nodes)
	for i := range z.index.mask() + 1 {
		if slot := z.index.at(i); slot != 0 {
			places = append(places, uint32(slot))
		}
	}
	places = append(places, z.hidden()...)
	slices.Sort(places)
	return places
}

// keyOf is the key of a name without the zone's origin. A label ends in an octet that is
// before all others, so octets 0 and 1 within labels become two.
func keyOf(prefix []byte) uint64 {
	var offs [128]uint8
	key, shift := uint64(0), 64
	for i := labelOffsets(prefix, &offs) - 1; i >= 0 && shift > 0; i-- {
		at := int(offs[i])
		for _, c := range prefix[at+1 : at+1+int(prefix[at])] {
			if c <= 1 {
				shift -= 8
				key |= 1 << shift
				c++
				if shift == 0 {
					break
				}
			}
			shift -= 8
			key |= uint64(c) << shift
			if shift == 0 {
				break
			}
		}
		shift -= 8
	}
	return key
}

// compare orders two names without their common origin.
func compare(a, b []byte) int {
	var ao, bo [128]uint8
	an, bn := labelOffsets(a, &ao), labelOffsets(b, &bo)
	for an > 0 && bn > 0 {
		an--
		bn--
		la, lb := wire.FirstLabel(a[ao[an]:]), wire.FirstLabel(b[bo[bn]:])
		if string(la) != string(lb) {
			if string(la) < string(lb) {
				return -1
			}
			return 1
		}
	}
	return an - bn
}

// labelOffsets is wire.LabelOffsets for a name without the root's octet.
func labelOffsets(prefix []byte, offs *[128]uint8) (n int) {
	for i := 0; i < len(prefix); i += int(prefix[i]) + 1 {
		offs[n] = uint8(i)
		n++
	}
	return n
}
