package store

import (
	"hash/maphash"
	"net/netip"
)

// key is what an Entry or a Failure is found by. NXDOMAIN is said of all types: 0.
//
// What is kept of a name under the types of a group has one hash: who looks for a type, an alias and NXDOMAIN finds
// them in one place (see shelf.firstOf). A group is small, so that a name with records of all types there are makes no
// long chain.
type key struct {
	name string
	hash uint32
	typ  uint16
}

const typesTogether = 128 // all but a few that are asked for: from A to HTTPS

func keyOf(name string, typ uint16) key {
	return key{name, hashOf(name) + uint32(typ/typesTogether)*0x9E3779B1, typ}
}

// of is the key of the same name and another type of the same group.
func (k key) of(typ uint16) key { return key{k.name, k.hash, typ} }

func (k key) hashed() uint32 { return k.hash }

// seed makes it so that nobody can choose names of one hash.
var seed = maphash.MakeSeed()

func hashOf(s string) uint32 { return uint32(maphash.String(seed, s)) }

func hashOfAddr(a netip.AddrPort) uint32 { return uint32(maphash.Comparable(seed, a)) }
