package chain

import (
	"math/bits"
	"net/netip"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Bounded is a WireViewer that knows beforehand which queries it can take at most. With many blocks for one zone the
// router asks only those of which it is possible that they take a query.
type Bounded interface {
	// Bounds is networks of which one has the client's address, and lower names in wire form of which one is the
	// query's, for all queries that the view takes. Nil is any. They do not change.
	Bounds() (clients []netip.Prefix, names [][]byte)
}

// siblings is the blocks of one zone, in file order, and which of them may take a query. There is an index for each of
// two sides of a query, with a set of blocks for each value; a block may take a query if it is in the sets of both.
//
//	client 192.0.2.7 ──▶ {1, 3, 4} ┐
//	                               ├─▶ {3, 4} ──▶ asked one after the other
//	name www.example.org ──▶ {3, 4}┘
type siblings struct {
	blocks []*block

	once    sync.Once
	indexed bool
	clients index[netip.Prefix]
	names   index[string]
	lengths []int // of the prefixes that clients has, IPv4 and IPv6
}

// fewBlocks is up to how many blocks are asked one after the other without looking at an index.
const fewBlocks = 4

// set is a set of blocks, a bit each.
type set []uint64

// index finds the blocks that a value does not rule out.
type index[K comparable] struct {
	any set // of those that take any value
	of  map[K]set
}

func (i *index[K]) add(k K, block, words int) {
	s := i.of[k]
	if s == nil {
		s = make(set, words)
		if i.of == nil {
			i.of = map[K]set{}
		}
		i.of[k] = s
	}
	s.add(block)
}

func (s set) add(n int) { s[n/64] |= 1 << (n % 64) }

// build makes the index, when the first query comes: until then filters may change.
func (s *siblings) build(views map[*block][]WireViewer) {
	words := (len(s.blocks) + 63) / 64
	s.clients.any, s.names.any = make(set, words), make(set, words)
	for i, b := range s.blocks {
		// Bounds without any value, such as a text that is no address, put the block into no set: it takes nothing.
		clients, names := boundsOf(b, views[b])
		s.indexed = s.indexed || clients != nil || names != nil
		if clients == nil {
			s.clients.any.add(i)
		}
		for _, p := range clients {
			s.clients.add(p.Masked(), i, words)
			s.addLength(p)
		}
		if names == nil {
			s.names.any.add(i)
		}
		for _, name := range names {
			s.names.add(string(name), i, words)
		}
	}
}

// boundsOf is what a block takes at most: what its first view with bounds of a kind says. It takes anything if it has
// filters that are no WireViewers, for nobody knows whether they stand in the place of those.
func boundsOf(b *block, views []WireViewer) (clients []netip.Prefix, names [][]byte) {
	if len(views) != len(*b.Filters) {
		return nil, nil
	}
	// All views of a block have to take a query, so each one's bounds are right for the block.
	for _, v := range views {
		bounded, ok := v.(Bounded)
		if !ok {
			continue
		}
		c, n := bounded.Bounds()
		if clients == nil {
			clients = c
		}
		if names == nil {
			names = n
		}
	}
	return clients, names
}

// addLength notes that there are prefixes of a length; those of IPv6 are 33 more. Few lengths are in use, so a look for
// each of them is cheaper than a tree.
func (s *siblings) addLength(p netip.Prefix) {
	n := p.Bits()
	if p.Addr().Is6() {
		n += 33
	}
	for _, have := range s.lengths {
		if have == n {
			return
		}
	}
	s.lengths = append(s.lengths, n)
}

// each calls f with the blocks that may take a query, in file order, until it returns true.
func (s *siblings) each(views map[*block][]WireViewer, client netip.Addr, name []byte, f func(*block) bool) {
	if len(s.blocks) > fewBlocks {
		if s.once.Do(func() { s.build(views) }); s.indexed && client.IsValid() {
			s.eachOf(client.Unmap().WithZone(""), name, f)
			return
		}
	}
	for _, b := range s.blocks {
		if f(b) {
			return
		}
	}
}

// eachOf is each by the index.
func (s *siblings) eachOf(client netip.Addr, name []byte, f func(*block) bool) {
	// A look into a map for each length of prefix, and for the name; the rest is a few words for each 64 blocks.
	byName := s.names.of[string(name)]
	var of [8]set // the client's networks, by their lengths; more are rare
	nets := of[:0]
	for _, n := range s.lengths {
		if n > 32 != client.Is6() {
			continue
		}
		if n > 32 {
			n -= 33
		}
		if p, err := client.Prefix(n); err == nil {
			if found := s.clients.of[p]; found != nil {
				nets = append(nets, found)
			}
		}
	}
	// The bits are gone through from the lowest on, which is the order of the file.
	for word, may := range s.clients.any {
		for _, found := range nets {
			may |= found[word]
		}
		named := s.names.any[word]
		if byName != nil {
			named |= byName[word]
		}
		for may &= named; may != 0; may &= may - 1 {
			if f(s.blocks[word*64+bits.TrailingZeros64(may)]) {
				return
			}
		}
	}
}

// question is what the router knows of a query.
type question struct {
	name   []byte // lower, in wire form
	client netip.Addr
	ds     bool
}

// questionOf is that of a query that is not unpacked.
func questionOf(q *wire.Query) question {
	return question{name: q.Lower(), client: q.Client.Addr(), ds: q.Type() == dns.TypeDS}
}
