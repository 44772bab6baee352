package zone

import (
	"errors"
	"fmt"
	"weak"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// grown is what a zone has that is made by changes, in place of the index and order of one that was built whole. Its
// versions share all that did not change:
//
//	nodes:  chunks that are only added to; what an older version has stays where it is
//	names:  pages, found by hash; a query looks at one word more than in a zone that was built
//	order:  a tree of branches
//
// Nodes that were replaced leave holes in the chunks. Each change moves some nodes out of the chunk with the most
// holes, until nobody needs that chunk; so holes are never more than about half of the memory, and no change waits for
// a sweep.
type grown struct {
	version uint64 // one more than that of the version before
	lineage lineage
	apex    uint32 // its place; as each version has another SOA record, it stands in neither of these:
	names   pages
	tree    *branch
	live    []int // octets of each chunk that this version needs

	open   int // number of the chunk that nodes are added to, -1 for none
	moving int // the one that nodes are moved out of, -1 for none
	moved  int // how far that got

	nsec   int     // nodes with NSEC records
	hashes *branch // nodes with NSEC3 records, which are not among the names
	hashed int     // how many
	proofs amount  // NSEC, NSEC3 and RRSIG records
	octets int     // of all records in wire form, uncompressed
}

// ErrHashed is the error of a zone with other records or names where NSEC3 records are.
var ErrHashed = errors.New("other records stand at the owners of NSEC3 records, or below")

// Growing is z as a version that Change takes: the same records in the same memory, with an index and an order that
// later versions share. It takes as long as sorting all names, half a second for a million; each change of a name then
// takes some microseconds, whatever the zone's size. It is ErrHashed if other
// records stand at the owners of NSEC3 records, or below, which somebody would have to look for.
func (z *Zone) Growing() (*Zone, error) {
	if z.grown != nil {
		return z, nil
	}
	now := &Zone{origin: z.origin, first: z.first, apex: z.apex, soa: z.soa, chunks: z.chunks, nodes: z.Names(), records: z.records, leads: z.leads}
	// The nodes stay where they are: only what leads to them is made anew.
	places := z.places()
	g := &grown{live: make([]int, len(z.chunks)), open: -1, moving: -1, nsec: len(z.nsec.keys)}
	below, hashes := make([]uint32, 0, len(places)-1), []uint32(nil)
	for _, place := range places {
		switch n := z.at(place); {
		case len(n.prefix()) == 0:
			g.apex = place
		case n.Set(typeNSEC3) != nil: // and nothing else, or it would not be hidden
			hashes = append(hashes, place)
		default:
			below = append(below, place)
		}
	}
	if len(hashes) != len(z.hidden()) {
		return nil, ErrHashed
	}
	var err error
	if g.names, err = spread(now, below, 0); err != nil {
		return nil, err
	}
	g.tree, g.hashes, g.hashed = newTree(inOrder(now, below), 0), newTree(inOrder(now, hashes), 0), len(hashes)
	for _, place := range places {
		n := now.at(place)
		g.live[place>>chunkBits] += n.size()
		g.octets += n.octets(z)
		g.proofs.add(n.proofs(z), 1)
	}
	g.lineage.twin = weak.Make(z)
	now.grown = g
	now.readParameters()
	return now, nil
}

// Octets is the octets of all records of a growing zone in wire form, uncompressed; 0 for one that is not growing.
func (z *Zone) Octets() int {
	if z.grown == nil {
		return 0
	}
	return z.grown.octets
}

// Unproved is how many records a growing zone has, and their octets in wire form, without those that prove others,
// NSEC, NSEC3 and RRSIG.
func (z *Zone) Unproved() (records, octets int) {
	return z.records - z.grown.proofs.records, z.grown.octets - z.grown.proofs.octets
}

// amount is how many records there are, and their octets in wire form.
type amount struct{ records, octets int }

func (a *amount) add(b amount, times int) {
	a.records += times * b.records
	a.octets += times * b.octets
}

// proofs is the amount of a node's NSEC, NSEC3 and RRSIG records.
func (n Node) proofs(z *Zone) (all amount) {
	for s := range n.Sets() {
		all.add(n.amount(z, s.Signatures()), 1)
		if t := s.Type(); t == typeNSEC || t == typeNSEC3 {
			all.add(n.amount(z, s), 1)
		}
	}
	return all
}

// amount is that of one of a node's RRsets.
func (n Node) amount(z *Zone, s RRset) (a amount) {
	for r := s.Records(); len(r) > 0; r = r.Next() {
		a.records++
		a.octets += int(n[1]) + len(z.origin) + 10 + r.plain()
	}
	return a
}

// size is the octets of memory that a node takes.
func (n Node) size() int {
	b, count := n.sets()
	for ; count > 0; count-- {
		b = RRset(b).behind()
	}
	return len(n) - len(b)
}

// octets is the octets of a node's records in wire form.
func (n Node) octets(z *Zone) (octets int) {
	for s := range n.Sets() {
		octets += n.amount(z, s).octets + n.amount(z, s.Signatures()).octets
	}
	return octets
}

// count is the number of a node's records.
func (n Node) count() (records int) {
	for s := range n.Sets() {
		records += s.Len() + s.Signatures().length()
	}
	return records
}

// length is Len for sets that may be nil.
func (s RRset) length() int {
	if s == nil {
		return 0
	}
	return s.Len()
}

// hides reports whether a node is a cut or has a DNAME, so that what stands below is not answered from.
func (n Node) hides() bool { return n != nil && n.flags()&(isCut|hasDNAME) != 0 }

// place is where the node of a name stands, 0 if there is none.
func (z *Zone) place(prefix []byte) uint32 {
	if len(prefix) == 0 {
		return z.grown.apex
	}
	var buf [wire.MaxName + 1]byte
	name := append(append(buf[:0], prefix...), z.origin...)
	return z.grown.names.find(z, prefix, wire.Hash(name))
}

// leastChunk is the least octets of a chunk that nodes are added to.
const leastChunk = 16 << 10

// store puts a node into memory that older versions do not read.
func (z *Zone) store(node []byte) (uint32, error) {
	// Chunks are an eighth of all, so that the one with most holes can be let go of soon.
	g := z.grown
	if g.open < 0 || len(z.chunks[g.open])+len(node) > cap(z.chunks[g.open]) {
		size := leastChunk
		for size < chunkSize && size < z.held()/8 {
			size *= 2
		}
		if size = max(size, len(node)); size >= chunkSize {
			size = chunkSize - 1
		}
		if len(node) > size {
			return 0, fmt.Errorf("a name has more than %d octets of data", size)
		}
		if err := z.openChunk(make([]byte, 0, size)); err != nil {
			return 0, err
		}
	}
	c := z.chunks[g.open]
	at := len(c)
	z.chunks[g.open] = append(c, node...)
	g.live[g.open] += len(node)
	return uint32(g.open)<<chunkBits | uint32(at), nil
}

// openChunk makes a chunk the one that nodes are added to. Its number is one that no node has. Number 0 is not
// used again, for nothing may stand at place 0.
func (z *Zone) openChunk(c []byte) error {
	g := z.grown
	for i := 1; i < len(z.chunks); i++ {
		if z.chunks[i] == nil {
			z.chunks[i], g.live[i], g.open = c, 0, i
			return nil
		}
	}
	if len(z.chunks) == maxChunks {
		return ErrTooBig
	}
	g.open = len(z.chunks)
	z.chunks, g.live = append(z.chunks, c), append(g.live, 0)
	return nil
}

// held is the octets of all chunks, with their holes.
func (z *Zone) held() (octets int) {
	for _, c := range z.chunks {
		octets += len(c)
	}
	return octets
}
