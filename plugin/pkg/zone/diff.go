package zone

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Delta is what changed from one version of a zone to another: what an incremental transfer (RFC 1995) sends. It holds
// no part of either zone, and never changes.
type Delta struct {
	From, To       uint32 // serials
	Removed, Added int    // records, both SOA records counted

	origin []byte
	blob   []byte // blocks: prefix length 1 | prefix | RRset; those removed first, each half with its SOA record first
}

// Size is the octets of memory that the delta needs.
func (d *Delta) Size() int { return len(d.blob) }

// Idle reports whether nothing changed but, at most, the SOA record under the same serial.
func (d *Delta) Idle() bool { return d.From == d.To && d.Removed == 1 && d.Added == 1 }

// Walk goes through the delta as RFC 1995 §4 sends it: the old SOA record, the records removed, the new SOA
// record, the records added.
func (d *Delta) Walk() *Walk { return &Walk{origin: d.origin, source: &deltaSource{rest: d.blob}} }

type deltaSource struct{ rest []byte }

func (s *deltaSource) nextSet() ([]byte, RRset, bool) {
	if len(s.rest) == 0 {
		return nil, nil, false
	}
	n := 1 + int(s.rest[0])
	prefix, set := s.rest[1:n], RRset(s.rest[n:])
	s.rest = set.behind()
	return prefix, set, true
}

// Diff compares two versions of a zone, name by name. It reports false if they are of different zones, or if the delta
// would be larger than limit octets: sending all of the zone is better then. It takes about 0.2 s for a million
// records, and no time if now was made of old by a Change. A record whose TTL changed is removed and added.
func Diff(old, now *Zone, limit int) (*Delta, bool) {
	if string(old.origin) != string(now.origin) {
		return nil, false
	}
	if d, ok := now.since(old); ok {
		return d, d.Size() <= limit
	}
	d := &differ{limit: limit}
	d.removed.put(nil, wire.TypeSOA, old.apex.Set(wire.TypeSOA).Records())
	d.added.put(nil, wire.TypeSOA, now.apex.Set(wire.TypeSOA).Records())
	before, after := newFinder(old), newFinder(now)
	for _, place := range old.places() {
		was := old.at(place)
		is, _ := after.find(was.prefix())
		if d.node(was.prefix(), was, is); d.full() {
			return nil, false
		}
	}
	for _, place := range now.places() {
		is := now.at(place)
		if _, ok := before.find(is.prefix()); ok {
			continue
		}
		if d.node(is.prefix(), nil, is); d.full() {
			return nil, false
		}
	}
	return &Delta{
		From: old.soa.serial, To: now.soa.serial, Removed: d.removed.records, Added: d.added.records,
		origin: now.origin, blob: append(d.removed.blob, d.added.blob...),
	}, true
}

// finder finds nodes, those too that are no names of the zone.
type finder struct {
	z      *Zone
	hidden map[string]Node
}

func newFinder(z *Zone) *finder {
	f := &finder{z: z}
	for _, place := range z.hidden() {
		if f.hidden == nil {
			f.hidden = make(map[string]Node, len(z.hidden()))
		}
		n := z.at(place)
		f.hidden[string(n.prefix())] = n
	}
	return f
}

// find is the node of a name without origin.
func (f *finder) find(prefix []byte) (Node, bool) {
	var buf [wire.MaxName + 1]byte
	name := append(append(buf[:0], prefix...), f.z.origin...)
	if n, ok := f.z.node(name, wire.Hash(name)); ok {
		return n, true
	}
	if f.z.grown != nil {
		place := f.z.hashPlace(prefix)
		return f.z.at(place), place != 0
	}
	n, ok := f.hidden[string(prefix)]
	return n, ok
}

// differ gathers what two zones do not have in common.
type differ struct {
	removed, added side
	limit          int
}

func (d *differ) full() bool { return len(d.removed.blob)+len(d.added.blob) > d.limit }

// node compares what stands at a name; either may be nil.
func (d *differ) node(prefix []byte, was, is Node) {
	var a, b []byte
	var an, bn int
	if was != nil {
		a, an = was.sets()
	}
	if is != nil {
		b, bn = is.sets()
	}
	for an > 0 || bn > 0 {
		var x, y RRset
		switch {
		case bn == 0 || an > 0 && u16(a) < u16(b):
			x = RRset(a)
		case an == 0 || u16(b) < u16(a):
			y = RRset(b)
		default:
			x, y = RRset(a), RRset(b)
		}
		if x != nil {
			a, an = x.behind(), an-1
		}
		if y != nil {
			b, bn = y.behind(), bn-1
		}
		if x == nil || x.Type() != wire.TypeSOA {
			d.set(prefix, x, y)
		}
		d.set(prefix, x.Signatures(), y.Signatures())
	}
}

// set compares two RRsets of one type; either may be nil.
func (d *differ) set(prefix []byte, was, is RRset) {
	a, b := was.Records(), is.Records()
	if bytes.Equal(a, b) {
		return
	}
	if was != nil {
		d.removed.put(prefix, was.Type(), a.without(b))
	}
	if is != nil {
		d.added.put(prefix, is.Type(), b.without(a))
	}
}

// first is the first record as it stands, TTL and all.
func (r Records) first() []byte { return r[:len(r)-len(r.Next())] }

// without is the records that are not among others.
func (r Records) without(others Records) (left Records) {
	has := others.has
	if len(others) > 1024 { // looking at all of them each time would take long
		set := map[string]bool{}
		for ; len(others) > 0; others = others.Next() {
			set[string(others.first())] = true
		}
		has = func(record []byte) bool { return set[string(record)] }
	}
	for ; len(r) > 0; r = r.Next() {
		if !has(r.first()) {
			left = append(left, r.first()...)
		}
	}
	return left
}

func (r Records) has(record []byte) bool {
	for ; len(r) > 0; r = r.Next() {
		if bytes.Equal(r.first(), record) {
			return true
		}
	}
	return false
}

// side is the records removed, or added.
type side struct {
	blob    []byte
	records int
}

// put adds a block, but none without records.
func (s *side) put(prefix []byte, typ uint16, records Records) {
	n := 0
	for r := records; len(r) > 0; r = r.Next() {
		n++
	}
	if n == 0 {
		return
	}
	s.blob = append(append(s.blob, byte(len(prefix))), prefix...)
	s.blob = binary.BigEndian.AppendUint16(s.blob, typ)
	s.blob = binary.BigEndian.AppendUint16(s.blob, uint16(n))
	s.blob = binary.BigEndian.AppendUint32(s.blob, uint32(len(records)))
	s.blob = append(s.blob, records...)
	s.records += n
}

// NewDelta is a delta of single records, as Walk gives those of one: the first of each kind is the SOA record. All is
// copied.
func NewDelta(origin []byte, removed, added []Record) (*Delta, error) {
	if len(removed) == 0 || len(added) == 0 || removed[0].Type != wire.TypeSOA || added[0].Type != wire.TypeSOA {
		return nil, ErrNoSOA
	}
	d := &Delta{Removed: len(removed), Added: len(added), origin: origin}
	packer := Builder{origin: origin}
	for i, records := range [...][]Record{removed, added} {
		var s side
		for _, r := range records {
			stored, err := packer.stored(r.Type, r.RData)
			if err != nil {
				return nil, err
			}
			if !wire.Below(r.Owner, origin) || r.Type == wire.TypeSOA && len(r.RData) < 22 {
				return nil, fmt.Errorf("record of %s, type %d, cannot be of zone %s", wire.Text(r.Owner), r.Type, wire.Text(origin))
			}
			s.put(r.Owner[:len(r.Owner)-len(origin)], r.Type, append(binary.BigEndian.AppendUint32(nil, r.TTL), stored...))
		}
		d.blob = append(d.blob, s.blob...)
		serial := u32(records[0].RData[len(records[0].RData)-20:])
		if i == 0 {
			d.From = serial
		} else {
			d.To = serial
		}
	}
	return d, nil
}
