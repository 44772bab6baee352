package zone

import (
	"iter"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file is the NSEC3 records (RFC 5155) of a zone that is growing. Their owners are no names of the zone, so that
// their nodes stand in a tree of their own, in the order of the hashes; a name of the zone that looks like a hash has
// a node among the names, too.

// isHashed reports whether a record is an NSEC3 record, or a signature of some.
func (r *Record) isHashed() bool {
	return r.Type == typeNSEC3 || r.Type == wire.TypeRRSIG && len(r.RData) > 2 && u16(r.RData) == typeNSEC3
}

// hashPlace is where the node with the NSEC3 records of an owner stands, 0 if there is none.
func (z *Zone) hashPlace(prefix []byte) (at uint32) {
	z.grown.hashes.back(z, keyOf(prefix), prefix, func(place uint32) bool {
		if string(z.at(place).prefix()) == string(prefix) {
			at = place
		}
		return false
	})
	return at
}

// Hashed is the nodes with NSEC3 records of a growing zone, from an owner on, in the order of their hashes. nil is all
// of them.
func (z *Zone) Hashed(owner []byte) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		var prefix []byte
		if owner != nil {
			prefix = owner[:len(owner)-len(z.origin)]
		}
		z.grown.hashes.each(z, prefix, func(place uint32) bool {
			n := z.at(place)
			return compare(n.prefix(), prefix) < 0 || yield(n)
		})
	}
}

// HashedBack is the nodes with NSEC3 records of a growing zone before an owner, the nearest first. nil is all of them,
// from the last one on.
func (z *Zone) HashedBack(owner []byte) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		var prefix []byte
		key := uint64(0)
		if owner != nil {
			prefix = append(make([]byte, 0, len(owner)), owner[:len(owner)-len(z.origin)]...)
			key = keyOf(prefix)
		}
		z.grown.hashes.back(z, key, prefix, func(place uint32) bool {
			n := z.at(place)
			return prefix != nil && string(n.prefix()) == string(prefix) || yield(n)
		})
	}
}

// AtHash is what stands at the owner of NSEC3 records, as At is for all others.
func (c *Change) AtHash(owner []byte) *Site {
	prefix := owner[:len(owner)-len(c.old.origin)]
	if s := c.hashes[string(prefix)]; s != nil {
		return s
	}
	var was Node
	if place := c.old.hashPlace(prefix); place != 0 {
		was = c.old.at(place)
	}
	s := newSite(c, slices.Clone(prefix), was)
	s.hashed = true
	c.hashes[string(s.prefix)] = s
	c.order = append(c.order, s)
	return s
}

// standsAt is where a site's node stands, 0 for nowhere.
func (s *Site) standsAt(z *Zone) uint32 {
	if s.hashed {
		return z.hashPlace(s.prefix)
	}
	return z.place(s.prefix)
}

// putHash makes a node the one of NSEC3 records.
func (c *Change) putHash(node Node) error {
	z, g := c.now, c.now.grown
	prefix := node.prefix()
	if old := z.hashPlace(prefix); old != 0 {
		g.live[old>>chunkBits] -= z.at(old).size()
	} else {
		g.hashed++
	}
	place, err := z.store(node)
	if err != nil {
		return err
	}
	// The tree alone leads to them; no query looks for them by name (RFC 5155 §7.2.8).
	left, right := g.hashes.set(z, keyed{keyOf(prefix), place}, prefix, g.version)
	g.hashes = grow(left, right, g.version)
	return nil
}

// pruneHash takes the node of NSEC3 records away.
func (c *Change) pruneHash(prefix []byte) {
	z, g := c.now, c.now.grown
	place := z.hashPlace(prefix)
	if place == 0 {
		return
	}
	g.live[place>>chunkBits] -= z.at(place).size()
	g.hashed--
	g.hashes = g.hashes.remove(z, keyOf(prefix), prefix, g.version).shrunk()
}

// readParameters finds out how denials are proved by NSEC3 records, if there are some.
func (z *Zone) readParameters() {
	z.nsec3 = nil
	if z.grown.hashed == 0 {
		return
	}
	z.nsec3 = &hashed{tree: z.grown.hashes}
	params, ok := parameters(z, func(string, ...any) {})
	if !ok { // records are there, but of no use; who builds zones warns of it
		z.nsec3.tree = nil
		return
	}
	z.nsec3.use(params)
}

// beforeHash is the last node with NSEC3 records that is not behind an owner, and whether it is the owner's own.
// Records of other parameters than the zone's are passed over.
func (h *hashed) beforeHash(z *Zone, prefix []byte) (n Node, exact bool) {
	key := uint64(0)
	if prefix != nil {
		key = keyOf(prefix)
	}
	h.tree.back(z, key, prefix, func(place uint32) bool {
		if at := z.at(place); matchesParameters(at.Set(typeNSEC3).Records().Data(), h.params) {
			n = at
		}
		return n == nil
	})
	return n, n != nil && string(n.prefix()) == string(prefix)
}

// HashedOwner is the owner of the NSEC3 record of a lower name, without salt and further iterations (RFC 9276 §3.1).
func HashedOwner(name, origin []byte) []byte {
	l := new(hashed).label(name)
	return append(append(make([]byte, 0, len(l)+len(origin)), l[:]...), origin...)
}

// NodeAtHash is what stands at an owner of NSEC3 records of a growing zone.
func (z *Zone) NodeAtHash(owner []byte) (n Node, ok bool) {
	if place := z.hashPlace(owner[:len(owner)-len(z.origin)]); place != 0 {
		return z.at(place), true
	}
	return nil, false
}
