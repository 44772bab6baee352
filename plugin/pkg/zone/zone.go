package zone

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Zone is one version of a zone.
type Zone struct {
	origin  []byte
	index   slots
	first   []byte // chunks[0]: most zones have no other
	apex    Node
	soa     soa
	chunks  [][]byte
	nodes   int
	records int
	leads   bool // an alias may lead to what is not here

	nsec  chain   // nodes with NSEC records
	nsec3 *hashed // NSEC3 records, nil if there are none
	grown *grown  // in place of index and nsec, if the zone is made by changes; nil otherwise

	claimed atomic.Bool // see Claim

	orderOnce sync.Once
	order     []uint32    // all nodes in canonical order; written in orderOnce
	sorted    atomic.Bool // order is there
}

// soa is what is asked of the SOA record all the time.
type soa struct {
	serial  uint32
	minimum uint32
	ttl     uint32
}

// Origin is the zone's name. It is only to be read.
func (z *Zone) Origin() []byte { return z.origin }

// Serial is the SOA record's serial number.
func (z *Zone) Serial() uint32 { return z.soa.serial }

// Newer reports whether serial a is newer than b: serials go round, so that half of all are newer than any (RFC 1982
// §3.2).
func Newer(a, b uint32) bool { return a != b && a-b < 1<<31 }

// Records is the number of records; Names, of names with data or below which there is some.
func (z *Zone) Records() int { return z.records }
func (z *Zone) Names() int   { return z.nodes - len(z.hidden()) }

// Signed reports whether the zone can prove what it does not have, by NSEC or NSEC3 records.
func (z *Zone) Signed() bool { return z.nsec3 != nil || z.hasNSEC() }

// hasNSEC reports whether there are NSEC records.
func (z *Zone) hasNSEC() bool { return len(z.nsec.keys) > 0 || z.grown != nil && z.grown.nsec > 0 }

// LeadsOut reports whether an alias of the zone may lead to a name that it has nothing at, so that answering from it
// may end in External.
func (z *Zone) LeadsOut() bool { return z.leads }

// Apex is the node of the origin.
func (z *Zone) Apex() Node { return z.apex }

// hidden is the places of nodes that are no names of the zone.
func (z *Zone) hidden() []uint32 {
	if z.nsec3 == nil {
		return nil
	}
	return z.nsec3.hidden
}

// Size is the octets of memory that the zone needs.
func (z *Zone) Size() int {
	n := len(z.index) + 12*len(z.nsec.keys)
	if z.grown != nil {
		n += z.grown.names.octets() + 18*(z.nodes+z.grown.hashed) // of branches that are three quarters full
	}
	if z.sorted.Load() {
		n += 4 * len(z.order)
	}
	if z.nsec3 != nil {
		n += 12 * len(z.nsec3.chain.keys)
	}
	for _, c := range z.chunks {
		n += cap(c)
	}
	return n
}

// Lookup is the node of exactly a lower name at or below the apex; hash is its Hash.
func (z *Zone) Lookup(name []byte, hash uint64) (Node, bool) { return z.node(name, hash) }

// Kind is how a name stands to a zone.
type Kind uint8

const (
	Missing   Kind = iota // the name does not exist; Node is its closest encloser
	Exists                // Node is the name's; it may be an empty non-terminal
	BelowCut              // the name is at or below a zone cut; Node is the cut's
	BelowName             // the name is below a DNAME; Node has it
	Wildcard              // the name does not exist; Node is the source of synthesis
)

// Match is where a name stands in a zone.
type Match struct {
	Kind Kind
	Node Node
}

// Find locates a name (RFC 1034 §4.3.2 step 3, RFC 4592 §3.3.1). name is at or below
// the apex. A cut or DNAME nearest the apex goes before all that stands below it.
// Find does not allocate.
func (z *Zone) Find(name []byte) Match { return z.find(name, wire.Hash(name)) }

// find is Find for a name whose hash is known.
func (z *Zone) find(name []byte, hash uint64) Match {
	if n, ok := z.node(name, hash); ok {
		switch flags := n.flags(); {
		case flags&occluded != 0:
			return z.above(n.name(z), n)
		case flags&isCut != 0:
			return Match{BelowCut, n}
		}
		return Match{Exists, n}
	}
	encloser := z.encloser(name)
	switch flags := encloser.flags(); {
	case flags&occluded != 0:
		return z.above(encloser.name(z), encloser)
	case flags&isCut != 0:
		return Match{BelowCut, encloser}
	case flags&hasDNAME != 0:
		return Match{BelowName, encloser}
	case flags&hasWildcard != 0:
		if source, ok := z.child(encloser, "*"); ok {
			return Match{Wildcard, source}
		}
	}
	return Match{Missing, encloser}
}

// lacks reports whether the zone has nothing at a name where it stands: no records at exactly the name, and no cut or
// DNAME at it or above.
func (z *Zone) lacks(m Match) bool {
	return m.Kind == Missing || m.Kind == Wildcard || m.Kind == Exists && m.Node.Empty()
}

// encloser is the closest encloser of a name that does not exist: the longest of its
// ancestors that does.
func (z *Zone) encloser(name []byte) Node {
	for len(name) > len(z.origin) {
		name = wire.Parent(name)
		if n, ok := z.node(name, wire.Hash(name)); ok {
			return n
		}
	}
	return z.apex
}

// above climbs from an occluded node to the cut or DNAME that occludes it.
func (z *Zone) above(name []byte, n Node) Match {
	for n.flags()&occluded != 0 {
		name = wire.Parent(name)
		n, _ = z.node(name, wire.Hash(name))
	}
	if n.flags()&isCut != 0 {
		return Match{BelowCut, n}
	}
	return Match{BelowName, n}
}

// node is the node of a name at or below the apex.
func (z *Zone) node(name []byte, hash uint64) (Node, bool) {
	prefix := name[:len(name)-len(z.origin)]
	if z.grown != nil {
		if len(prefix) == 0 {
			return z.at(z.grown.apex), true
		}
		if place := z.grown.names.find(z, prefix, hash); place != 0 {
			return z.at(place), true
		}
		return nil, false
	}
	mask := z.index.mask()
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := z.index.at(i)
		if slot == 0 {
			return Node{}, false
		}
		if slot>>32 == hash>>32 {
			if n := z.at(uint32(slot)); string(n.prefix()) == string(prefix) {
				return n, true
			}
		}
	}
}

// child is the node one label below n.
func (z *Zone) child(n Node, label string) (Node, bool) {
	var buf [wire.MaxName + 1]byte
	name := append(buf[:0], byte(len(label)))
	name = append(name, label...)
	name = append(append(name, n.prefix()...), z.origin...)
	if len(name) > wire.MaxName {
		return Node{}, false
	}
	return z.node(name, wire.Hash(name))
}

// at is the node at a place.
func (z *Zone) at(place uint32) Node {
	if place < chunkSize {
		return Node(z.first[place:])
	}
	return Node(z.chunks[place>>chunkBits][place&(chunkSize-1):])
}

// slots is an index of open addressing, eight octets a slot: the upper half of the hash, and the node's place; 0 if
// it is free. Octets, so that a small zone lies in memory as one piece.
type slots []byte

func (s slots) mask() uint64               { return uint64(len(s)/8 - 1) }
func (s slots) at(i uint64) uint64         { return binary.LittleEndian.Uint64(s[8*i:]) }
func (s slots) set(i uint64, value uint64) { binary.LittleEndian.PutUint64(s[8*i:], value) }

// u16 and u32 read numbers.
func u16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
