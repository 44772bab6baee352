package zone

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"weak"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Change is the next version of a growing zone in the making, record by record: for dynamic updates (RFC 2136). It
// belongs to one goroutine; the version that it began with stays as it is, and is read meanwhile.
//
//	c := v.Change()
//	c.At(name).Add(…) …
//	next, delta, err := c.Zone()
//
// A version may have one next version only, for both would be written to the same memory. If nobody was given that
// version, it may be thrown away, and another Change begun. Where several may come to change a version, see Claim.
type Change struct {
	old, now *Zone
	sites    map[string]*Site
	hashes   map[string]*Site // of NSEC3 records
	order    []*Site          // in the order in which they were asked for
	packer   Builder
	buf      []byte
}

// Claim lets the first who calls it make the next version of z; release lets another one, if nobody was given a
// version.
func (z *Zone) Claim() (release func(), ok bool) {
	return func() { z.claimed.Store(false) }, z.claimed.CompareAndSwap(false, true)
}

// Change begins the next version of a zone that is growing.
func (z *Zone) Change() *Change {
	// What is copied here is what all changes write to: the top of the index, the list of chunks, and how full these
	// are. Pages, branches and nodes are copied when they are written to.
	g := *z.grown
	g.version++
	g.lineage = lineage{parent: weak.Make(z)}
	if z.grown.lineage.delta == nil {
		g.lineage.twin = z.grown.lineage.twin // z is fresh from Growing
	}
	g.names.top = slices.Clone(g.names.top)
	g.live = append([]int(nil), g.live...)
	now := &Zone{
		origin: z.origin, first: z.first, apex: z.apex, soa: z.soa, nodes: z.nodes, records: z.records, leads: z.leads,
		chunks: append([][]byte(nil), z.chunks...), grown: &g,
	}
	return &Change{old: z, now: now, sites: map[string]*Site{}, hashes: map[string]*Site{}, packer: Builder{origin: z.origin}}
}

// At is what stands at a name, to be looked at and changed. name is in the zone, in wire form and lower; it is copied.
func (c *Change) At(name []byte) *Site {
	prefix := name[:len(name)-len(c.old.origin)]
	if s := c.sites[string(prefix)]; s != nil {
		return s
	}
	var was Node
	if place := c.old.place(prefix); place != 0 {
		was = c.old.at(place)
	}
	s := newSite(c, bytes.Clone(prefix), was)
	c.sites[string(s.prefix)] = s
	c.order = append(c.order, s)
	return s
}

// Base is the version that the change began with.
func (c *Change) Base() *Zone { return c.old }

// Names is the names that were asked for so far.
func (c *Change) Names() (names [][]byte) {
	for _, s := range c.order {
		names = append(names, s.Name())
	}
	return names
}

// pack is a record as node.go has it.
func (c *Change) pack(typ uint16, ttl uint32, rdata []byte) (Records, error) {
	stored, err := c.packer.stored(typ, rdata)
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(stored)), ttl), stored...), nil
}

// Zone makes the next version, and what changed to it: nothing, if delta.Changes is false. The Change is of no use
// after it.
func (c *Change) Zone() (*Zone, *Delta, error) {
	d := differ{limit: math.MaxInt}
	z := c.now
	for _, s := range c.order {
		if err := c.apply(s); err != nil {
			return nil, nil, err
		}
	}
	// Names go when all others are there, so that none is taken for one that nobody needs.
	for _, s := range c.order {
		switch {
		case !s.Empty():
		case s.hashed:
			c.pruneHash(s.prefix)
		default:
			c.prune(s.prefix)
		}
	}
	// What is hidden is known when all names are there.
	for _, s := range c.order {
		if err := c.occlude(s); err != nil {
			return nil, nil, err
		}
	}
	if err := c.sweep(); err != nil {
		return nil, nil, err
	}
	z.apex = z.at(z.place(nil))
	if err := z.readSOA(); err != nil {
		return nil, nil, err
	}
	z.readParameters()
	// The delta is of the names that were changed; nothing else is looked at.
	d.removed.put(nil, wire.TypeSOA, c.old.apex.Set(wire.TypeSOA).Records())
	d.added.put(nil, wire.TypeSOA, z.apex.Set(wire.TypeSOA).Records())
	for _, s := range c.order {
		var is Node
		if place := s.standsAt(z); place != 0 {
			is = z.at(place)
		}
		d.node(s.prefix, s.was, is)
	}
	delta := &Delta{
		From: c.old.soa.serial, To: z.soa.serial, Removed: d.removed.records, Added: d.added.records,
		origin: z.origin, blob: slices.Concat(d.removed.blob, d.added.blob),
	}
	z.grown.lineage.delta = delta
	return z, delta, nil
}

// Changes reports whether a delta has anything but the SOA record, or that with another content.
func (d *Delta) Changes() bool {
	if d.Removed > 1 || d.Added > 1 || d.From != d.To {
		return true
	}
	s := deltaSource{rest: d.blob}
	_, was, _ := s.nextSet()
	_, is, _ := s.nextSet()
	return !bytes.Equal(was.Records(), is.Records())
}

// Changes reports whether the records at any name are others than before, but for the order in which they stand.
func (c *Change) Changes() bool {
	for _, s := range c.order {
		if s.Empty() && (s.was == nil || s.was.Empty()) {
			continue
		}
		node, err := s.encode(c.buf)
		if c.buf = node; err != nil {
			return true // which Zone reports
		}
		d := differ{limit: math.MaxInt}
		d.node(s.prefix, s.was, node)
		if len(d.removed.blob)+len(d.added.blob) > 0 {
			return true
		}
		var was RRset
		if s.was != nil {
			was = s.was.Set(wire.TypeSOA)
		}
		if is := Node(node).Set(wire.TypeSOA); !bytes.Equal(was.Records(), is.Records()) {
			return true
		}
	}
	return false
}

// apply stores a site's node, if it has records or has had some.
func (c *Change) apply(s *Site) error {
	if s.Empty() && (s.was == nil || s.was.Empty()) {
		return nil
	}
	node, err := s.encode(c.buf)
	if err != nil {
		return err
	}
	c.buf = node
	z := c.now
	if s.was != nil {
		z.records -= s.was.count()
		z.grown.octets -= s.was.octets(z)
		z.grown.proofs.add(s.was.proofs(z), -1)
		if s.was.Set(typeNSEC) != nil {
			z.grown.nsec--
		}
	}
	if place := s.standsAt(z); place != 0 { // perhaps since a name below it was added
		node[0] |= z.at(place).flags() & (hasWildcard | occluded)
	}
	if s.was != nil {
		if bytes.Equal(node, s.was[:min(len(s.was), len(node))]) && s.was.size() == len(node) {
			c.count(s.was)
			return nil
		}
	}
	c.count(node)
	if s.hashed {
		return c.putHash(node)
	}
	return c.put(node)
}

// count adds a node's records to the zone's numbers.
func (c *Change) count(n Node) {
	z := c.now
	z.records += n.count()
	z.grown.octets += n.octets(z)
	z.grown.proofs.add(n.proofs(z), 1)
	if n.Set(typeNSEC) != nil {
		z.grown.nsec++
	}
	if n.flags()&(hasCNAME|hasDNAME) != 0 {
		z.leads = true // where to may be what is deleted next
	}
}

// put makes a node the one of its name. A name that is new comes with those above it, down from the first that exists.
func (c *Change) put(node Node) error {
	z, g := c.now, c.now.grown
	prefix := node.prefix()
	if len(prefix) == 0 {
		g.live[g.apex>>chunkBits] -= z.at(g.apex).size()
		place, err := z.store(node)
		g.apex = place
		return err
	}
	name := append(append(make([]byte, 0, len(prefix)+len(z.origin)), prefix...), z.origin...)
	hash := wire.Hash(name)
	old := g.names.find(z, prefix, hash)
	if old == 0 {
		if err := c.newName(node, name); err != nil {
			return err
		}
	} else {
		g.live[old>>chunkBits] -= z.at(old).size()
	}
	place, err := z.store(node)
	if err != nil {
		return err
	}
	if err := g.names.set(hash, old, place, g.version); err != nil {
		return err
	}
	left, right := g.tree.set(z, keyed{keyOf(prefix), place}, prefix, g.version)
	g.tree = grow(left, right, g.version)
	return nil
}

// Apply makes the changes of a delta, as the zone must have them: it is an error to remove what is not there.
func (c *Change) Apply(d *Delta) error {
	w := d.Walk()
	for n := range d.Removed + d.Added {
		r, _ := w.Next()
		if wire.IsMeta(r.Type) { // which Builder leaves out, and some zones had before
			continue
		}
		err := error(nil)
		if n < d.Removed {
			err = c.Remove(r)
		} else {
			err = c.Add(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Add adds a record of class IN, whose owner is lower, or gives one that is there another TTL. All is copied.
func (c *Change) Add(r Record) error { return c.of(r).Add(r.Type, r.TTL, r.RData) }

// Remove takes a record away, whatever its TTL. It is an error if it is not there.
func (c *Change) Remove(r Record) error {
	if !c.of(r).Remove(r.Type, r.RData) {
		return fmt.Errorf("zone %s has no such record of %s, type %d, to remove", wire.Text(c.old.origin), wire.Text(r.Owner), r.Type)
	}
	return nil
}

// of is the site that a record is of.
func (c *Change) of(r Record) *Site {
	if r.isHashed() {
		return c.AtHash(r.Owner)
	}
	return c.At(r.Owner)
}

// nsecBefore is the last node with NSEC records that is not behind a name (RFC 4034 §6.1), nil if there is none.
func (z *Zone) nsecBefore(prefix []byte) (n Node) {
	z.eachBack(prefix, func(place uint32) bool {
		at := z.at(place)
		if at.flags()&occluded == 0 && at.Set(typeNSEC) != nil {
			n = at
		}
		return n == nil
	})
	return n
}
