package zone

import "iter"

// This file finds names next to each other in a zone that is growing, for who keeps a chain of denials right.

// NodeAt is what stands at a name of a growing zone, in wire form and lower.
func (z *Zone) NodeAt(name []byte) (n Node, ok bool) {
	place := z.place(name[:len(name)-len(z.origin)])
	if place == 0 {
		return nil, false
	}
	return z.at(place), true
}

// From is the names of a growing zone from one on, in canonical order (RFC 4034 §6.1), empty non-terminals too. The
// name itself need not exist.
func (z *Zone) From(name []byte) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		prefix := name[:len(name)-len(z.origin)]
		z.eachFrom(prefix, func(place uint32) bool {
			n := z.at(place)
			return compare(n.prefix(), prefix) < 0 || yield(n)
		})
	}
}

// Back is the names of a growing zone before one, the nearest first.
func (z *Zone) Back(name []byte) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		prefix := append(make([]byte, 0, len(name)), name[:len(name)-len(z.origin)]...)
		z.eachBack(prefix, func(place uint32) bool {
			n := z.at(place)
			return string(n.prefix()) == string(prefix) || yield(n)
		})
	}
}

// Last is the names of a growing zone from the last one on backwards.
func (z *Zone) Last() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		if z.grown.tree.back(z, 0, nil, func(place uint32) bool { return yield(z.at(place)) }) {
			yield(z.at(z.grown.apex))
		}
	}
}

// eachFrom calls f with the places of all names that are not before a name, and perhaps one that is, in canonical
// order, until it returns false.
func (z *Zone) eachFrom(prefix []byte, f func(place uint32) bool) {
	// The apex is the first name of all, and in no tree.
	if len(prefix) > 0 || f(z.grown.apex) {
		z.grown.tree.each(z, prefix, f)
	}
}

// eachBack calls f with the places of all names that are not behind a name, the last one first, until it returns false.
func (z *Zone) eachBack(prefix []byte, f func(place uint32) bool) {
	if len(prefix) == 0 || z.grown.tree.back(z, keyOf(prefix), prefix, f) {
		f(z.grown.apex)
	}
}
