package zone

import (
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file is what a change does to other names than its own: when a name appears or disappears, those above it may be
// empty non-terminals or have a wildcard, and those below it may be hidden by a cut or a DNAME (RFC 4592 §2.2.2, RFC
// 6672 §2.3).

// newName does what a new name needs above it, and sets the flags that this gives.
func (c *Change) newName(node Node, name []byte) error {
	z := c.now
	z.nodes++
	// A name's parent exists always, if need be as an empty non-terminal (RFC 4592 §2.2.2), and knows whether it has a
	// wildcard below it; the name knows whether it is hidden by what is above.
	up := wire.Parent(name)
	prefix := up[:len(up)-len(z.origin)]
	star := string(wire.FirstLabel(name)) == "*"
	place := z.place(prefix)
	if place == 0 {
		above := append(append([]byte{0, byte(len(prefix))}, prefix...), 0, 0)
		if star {
			above[0] = hasWildcard
		}
		if err := c.put(above); err != nil {
			return err
		}
		place = z.place(prefix)
	} else if star && z.at(place).flags()&hasWildcard == 0 {
		if err := c.reflag(place, z.at(place).flags()|hasWildcard); err != nil {
			return err
		}
		place = z.place(prefix)
	}
	if z.at(place).flags()&(isCut|hasDNAME|occluded) != 0 {
		node[0] |= occluded
	}
	return nil
}

// reflag gives the node at a place other flags. Nodes are never written to, so it is another node then.
func (c *Change) reflag(place uint32, flags byte) error {
	n := c.now.at(place)
	n = append(Node(nil), n[:n.size()]...)
	n[0] = flags
	return c.put(n)
}

// prune takes away a name without records, and names above that exist for its sake only.
func (c *Change) prune(prefix []byte) {
	z, g := c.now, c.now.grown
	name := append(append([]byte(nil), prefix...), z.origin...)
	// Up to the first one that is needed: with records, or with other names below it.
	for len(name) > len(z.origin) {
		prefix := name[:len(name)-len(z.origin)]
		place := z.place(prefix)
		if place == 0 || !z.at(place).Empty() || z.hasBelow(prefix) {
			return
		}
		g.live[place>>chunkBits] -= z.at(place).size()
		g.names.remove(wire.Hash(name), place, g.version)
		g.tree = g.tree.remove(z, keyOf(prefix), prefix, g.version).shrunk()
		z.nodes--
		star := string(wire.FirstLabel(name)) == "*"
		name = wire.Parent(name)
		if up := z.place(name[:len(name)-len(z.origin)]); star {
			c.reflag(up, z.at(up).flags()&^hasWildcard) // which is no larger than it was
		}
	}
}

// hasBelow reports whether there are names below one.
func (z *Zone) hasBelow(prefix []byte) (found bool) {
	z.eachFrom(prefix, func(place uint32) bool {
		p := z.at(place).prefix()
		if len(p) == len(prefix) {
			return true // the name itself
		}
		found = len(p) > len(prefix) && below(p, prefix)
		return false
	})
	return found
}

// below reports whether a name without origin lies below another.
func below(p, above []byte) bool {
	if len(p) <= len(above) || string(p[len(p)-len(above):]) != string(above) {
		return false
	}
	for i := 0; i < len(p)-len(above); i += int(p[i]) + 1 {
		if i+int(p[i])+1 == len(p)-len(above) {
			return true
		}
	}
	return false
}

// occlude tells the names below a site that they are hidden now, or are not any more.
func (c *Change) occlude(s *Site) error {
	z := c.now
	place := z.place(s.prefix)
	if place == 0 || s.hashed || s.was.hides() == z.at(place).hides() {
		return nil // a name that went had none below it
	}
	// Names below stand behind it in canonical order, up to the first that is not below it.
	var places []uint32
	z.eachFrom(s.prefix, func(place uint32) bool {
		p := z.at(place).prefix()
		if string(p) == string(s.prefix) {
			return true
		}
		if !below(p, s.prefix) {
			return false
		}
		places = append(places, place)
		return true
	})
	for _, place := range places { // from above to below
		n := z.at(place)
		up := n.prefix()[1+int(n.prefix()[0]):]
		flags := n.flags() &^ occluded
		if z.at(z.place(up)).flags()&(isCut|hasDNAME|occluded) != 0 {
			flags |= occluded
		}
		if flags != n.flags() {
			if err := c.reflag(place, flags); err != nil {
				return err
			}
		}
	}
	return nil
}

// inTree is the places of all nodes in canonical order.
func (z *Zone) inTree() []uint32 {
	var hashes []uint32
	z.grown.hashes.each(z, nil, func(place uint32) bool {
		hashes = append(hashes, place)
		return true
	})
	places := make([]uint32, 0, z.nodes+len(hashes))
	z.eachFrom(nil, func(place uint32) bool {
		for len(hashes) > 0 && compare(z.at(hashes[0]).prefix(), z.at(place).prefix()) < 0 {
			places, hashes = append(places, hashes[0]), hashes[1:]
		}
		places = append(places, place)
		return true
	})
	return append(places, hashes...)
}
