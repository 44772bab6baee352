package zone

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Build makes the zone. The Builder is of no use after it.
func (b *Builder) Build() (*Zone, error) {
	z, err := b.BuildTable()
	if err != nil {
		return nil, err
	}
	return z, z.readSOA()
}

// BuildTable makes a Zone of records that are not a zone of their own: it needs no SOA
// record, and is good for Lookup, but not for answering.
func (b *Builder) BuildTable() (*Zone, error) {
	if err := b.adopt(); err != nil {
		return nil, err
	}
	if b.data.full || b.names.full {
		return nil, ErrTooBig
	}
	z := &Zone{origin: b.origin, nodes: b.nodes.n}
	b.index = nil
	var out arena
	done := newReleaser(b)
	places := make([]uint32, b.nodes.n)
	var nsec, nsec3, hidden []uint32
	for n := range int32(b.nodes.n) {
		b.turns.Done()
		d := b.nodes.at(n)
		if d.parent >= 0 {
			if up := b.nodes.at(d.parent).flags; up&(isCut|hasDNAME|occluded) != 0 {
				d.flags |= occluded // nodes stand behind their parents
			}
		}
		node, err := b.encode(d)
		if err != nil {
			return nil, err
		}
		places[n] = out.add(node)
		done.encoded(d, b.order)
		if d.has&hasNSEC != 0 && d.flags&occluded == 0 {
			nsec = append(nsec, places[n])
		}
		if d.has&hasNSEC3 != 0 {
			nsec3 = append(nsec3, places[n])
			if d.onlyNSEC3() {
				hidden = append(hidden, places[n])
			}
		}
	}
	if out.full {
		return nil, ErrTooBig
	}
	if more := b.mixed - maxMixed; more > 0 {
		b.warn("%d more RRsets of zone %s have several TTLs", more, wire.Text(b.origin))
	}
	out.clip()
	z.chunks, z.records = out.chunks, b.kept
	b.names, b.data, b.recs = arena{}, arena{}, rows[draftRecord]{}
	b.enterAll(z, places)
	z.pack()
	z.first = z.chunks[0]
	z.apex = z.at(places[0])
	if len(nsec) > 0 {
		z.nsec = newChain(z, nsec)
	}
	if len(nsec3) > 0 {
		z.nsec3 = b.hashed(z, nsec3, hidden)
	}
	z.leads = b.leads(z, places)
	return z, nil
}

// leads reports whether an alias of z may lead to a name that the zone has nothing at.
func (b *Builder) leads(z *Zone, places []uint32) bool {
	return slices.ContainsFunc(places, func(p uint32) bool {
		b.turns.Done()
		return z.leadsAway(z.at(p))
	})
}

// leadsAway reports whether an alias at a node may lead to a name that the zone has nothing at. What a DNAME record
// makes of a name is not known before.
func (z *Zone) leadsAway(n Node) bool {
	flags := n.flags()
	switch {
	case flags&occluded != 0, flags&(hasCNAME|hasDNAME) == 0:
		return false
	case flags&hasDNAME != 0:
		return true
	}
	var buf [wire.MaxName + 1]byte
	target := n.Set(wire.TypeCNAME).Records().AppendRData(buf[:0], z.origin)
	return !wire.Below(target, z.origin) || z.lacks(z.Find(target))
}

// enterAll makes the index of all nodes but those of which there is nothing but an NSEC3 record:
// its owner is no name of the zone (RFC 5155 §7.2.8).
func (b *Builder) enterAll(z *Zone, places []uint32) {
	size := 8
	for size < b.nodes.n*2 {
		size *= 2
	}
	z.index = make(slots, 8*size)
	mask := z.index.mask()
	for n := range int32(b.nodes.n) {
		b.turns.Done()
		d := b.nodes.at(n)
		if d.onlyNSEC3() {
			continue
		}
		hash := d.fullHash()
		i := hash & mask
		for z.index.at(i) != 0 {
			i = (i + 1) & mask
		}
		z.index.set(i, hash>>32<<32|uint64(places[n]))
	}
}

// maxPacked is up to which octets a zone is put into one piece of memory.
const maxPacked = 4096

// pack puts all of a small zone into one piece: of ten thousand of them, each is asked so seldom that what lies in
// several places is in no cache.
func (z *Zone) pack() {
	size := len(z.origin) + len(z.index) + len(z.chunks[0])
	if len(z.chunks) > 1 || size > maxPacked {
		return
	}
	piece := append(append(append(make([]byte, 0, size), z.origin...), z.index...), z.chunks[0]...)
	o, i := len(z.origin), len(z.origin)+len(z.index)
	z.origin, z.index, z.chunks[0] = piece[:o:o], slots(piece[o:i:i]), piece[i:]
}

// encode is the node of a draft. It holds until the next call.
func (b *Builder) encode(d *draft) ([]byte, error) {
	prefix := b.prefix(d)
	out := append(append(b.buf[:0], d.flags, byte(len(prefix))), prefix...)
	recs := b.sortedRecords(d)
	count := len(out)
	out = append(out, 0, 0)
	sets := 0
	name := func() string { return wire.Text(append(prefix[:len(prefix):len(prefix)], b.origin...)) }
	for ; len(recs) > 0; sets++ {
		set, sigs, rest := b.split(recs)
		if len(set) > math.MaxUint16 || len(sigs) > math.MaxUint16 {
			return nil, fmt.Errorf("%s has more than %d records of type %d", name(), math.MaxUint16, b.recs.at(set[0]).typ)
		}
		b.even(set, sigs, name)
		if service(b.recs.at(set[0]).typ) && len(sigs) == 0 && !b.digest && !b.asIs {
			b.lowerTargets(set)
		}
		if first := b.recs.at(set[0]); first.typ == wire.TypeSOA && slices.ContainsFunc(set, func(i int32) bool {
			return !b.same(wire.TypeSOA, b.record(b.recs.at(i)), b.record(first))
		}) {
			b.warn("%s has several SOA records: the last one counts", name())
		}
		start := len(out)
		out = b.encodeSet(out, set)
		// RFC 2181 §10.1, RFC 6672 §2.4
		if typ, n := u16(out[start:]), u16(out[start+2:]); n > 1 && (typ == wire.TypeCNAME || typ == wire.TypeDNAME) {
			b.warn("%s has %d %s records, may have one", name(), n, typeText(typ))
		}
		if len(sigs) > 0 {
			out[start+4] |= setSigned >> 24
			out = b.encodeSet(out, sigs)
		}
		recs = rest
	}
	binary.BigEndian.PutUint16(out[count:], uint16(sets))
	b.buf = out
	if d.flags&hasCNAME != 0 && sets > 1 && !dnssecOnly(Node(out)) {
		b.warn("%s has a CNAME record and other data", name())
	}
	if len(out) >= chunkSize {
		return nil, fmt.Errorf("%s has more than %d octets of data", name(), chunkSize)
	}
	return out, nil
}

// sortedRecords is a node's records by type, each type's signatures behind it. Signatures of
// types that the node does not have are a type of their own.
func (b *Builder) sortedRecords(d *draft) []int32 {
	recs := b.order[:0]
	signatures := false
	for i := d.first; i >= 0; i = b.recs.at(i).next {
		recs = append(recs, i)
		signatures = signatures || b.recs.at(i).typ == wire.TypeRRSIG
	}
	b.order = recs
	if len(recs) < 2 && !signatures {
		return recs
	}
	key := func(i int32) uint32 {
		if r := b.recs.at(i); r.typ == wire.TypeRRSIG && r.cover != wire.TypeRRSIG {
			return uint32(r.cover)<<1 | 1
		}
		return uint32(b.recs.at(i).typ) << 1
	}
	byKey := func(x, y int32) int { return cmp.Compare(key(x), key(y)) }
	slices.SortStableFunc(recs, byKey)
	orphans := false
	for k, i := range recs {
		r := b.recs.at(i)
		if r.typ != wire.TypeRRSIG || k > 0 && b.covers(r, b.recs.at(recs[k-1])) {
			continue
		}
		r.cover, orphans = wire.TypeRRSIG, true
	}
	if orphans {
		slices.SortStableFunc(recs, byKey)
	}
	return recs
}

// covers reports whether a signature covers the type of the record before it, or as that one does.
func (b *Builder) covers(sig, before *draftRecord) bool {
	return before.typ == sig.cover || before.typ == wire.TypeRRSIG && before.cover == sig.cover
}

// split is the first RRset of sorted records, its signatures, and the rest.
func (b *Builder) split(recs []int32) (set, sigs, rest []int32) {
	typ := b.recs.at(recs[0]).typ
	n := 1
	for n < len(recs) && b.recs.at(recs[n]).typ == typ {
		n++
	}
	s := n
	for s < len(recs) && typ != wire.TypeRRSIG && b.recs.at(recs[s]).typ == wire.TypeRRSIG && b.recs.at(recs[s]).cover == typ {
		s++
	}
	return recs[:n], recs[n:s], recs[s:]
}

// lowerTargets makes the names of SVCB and HTTPS records lower case.
func (b *Builder) lowerTargets(recs []int32) {
	for _, i := range recs {
		r := b.recs.at(i)
		target := b.record(r)[5+2:]
		target = target[:wire.NameLen(target)]
		wire.Lower(target, target)
	}
}

// encodeSet appends an RRset. It holds a record once (RFC 2181 §5), and the last SOA record only.
func (b *Builder) encodeSet(out []byte, recs []int32) []byte {
	typ := b.recs.at(recs[0]).typ
	if typ == wire.TypeSOA {
		recs = recs[len(recs)-1:]
	}
	start := len(out)
	out = binary.BigEndian.AppendUint16(out, typ)
	out = append(out, 0, 0, 0, 0, 0, 0)
	n := 0
	var seen map[string]bool // for sets in which looking at all others would take long
	if len(recs) > 16 {
		seen = make(map[string]bool, len(recs))
	}
	for k, i := range recs {
		r := b.recs.at(i)
		data := b.record(r)
		again := false
		if seen != nil {
			key := string(b.comparable(typ, data))
			again, seen[key] = seen[key], true
		}
		for j := 0; seen == nil && j < k && !again; j++ {
			again = b.same(typ, b.record(b.recs.at(recs[j])), data)
		}
		if again {
			continue
		}
		out = binary.BigEndian.AppendUint32(out, r.ttl)
		out = append(out, data...)
		n++
	}
	b.kept += n
	binary.BigEndian.PutUint16(out[start+2:], uint16(n))
	binary.BigEndian.PutUint32(out[start+4:], uint32(len(out)-start-setHeader))
	return out
}

// dnssecOnly reports whether what stands beside a CNAME may stand there (RFC 4034 §2.5).
func dnssecOnly(n Node) bool {
	for s := range n.Sets() {
		switch s.Type() {
		case wire.TypeCNAME, wire.TypeRRSIG, typeNSEC:
		default:
			return false
		}
	}
	return true
}

// readSOA notes what the SOA record says.
func (z *Zone) readSOA() error {
	set := z.apex.Set(wire.TypeSOA)
	if set == nil {
		return ErrNoSOA
	}
	r := set.Records()
	data, _ := r.data()
	if len(data) < 20 {
		return fmt.Errorf("the SOA record of %s is too short", wire.Text(z.origin))
	}
	numbers := data[len(data)-20:]
	z.soa = soa{serial: u32(numbers), minimum: u32(numbers[16:]), ttl: r.TTL()}
	return nil
}
