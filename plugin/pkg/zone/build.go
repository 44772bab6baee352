package zone

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Builder gathers the records of a zone. It keeps them packed, so it needs little more memory than
// the Zone that Build makes of it. It belongs to one goroutine.
type Builder struct {
	origin []byte
	names  arena // lower prefixes, each behind its length
	nodes  []draft
	index  []uint32 // open addressing: number of the node plus one
	recs   []draftRecord
	data   arena // RDATA with pointers cut out; see stored
	warn   func(format string, args ...any)
	buf    []byte
	kept   int // records that are no repetitions
}

// draft is a node in the making.
type draft struct {
	name        uint32 // place of the prefix
	hash        uint64 // of the whole name
	parent      int32
	first, last int32 // records, -1 for none
	flags       byte
}

type draftRecord struct {
	next  int32
	typ   uint16
	ttl   uint32
	data  uint32 // place of what node.go calls a record, without its TTL
	bytes uint32
}

// Errors of Build.
var (
	ErrNoSOA = errors.New("no SOA record")
	ErrNSEC3 = errors.New("NSEC3 zone is not supported")
)

// NewBuilder is a Builder for the zone origin. What is wrong with single records, which are
// then left out, is told to warn.
func NewBuilder(origin []byte, warn func(format string, args ...any)) *Builder {
	b := &Builder{origin: append([]byte(nil), origin...), index: make([]uint32, 64), warn: warn}
	wire.Lower(b.origin, b.origin)
	b.node(b.origin, wire.Hash(b.origin))
	return b
}

// Add adds a record of class IN. owner and rdata are uncompressed wire form; they are copied. A record
// whose owner is not in the zone is left out, and one that is there already.
func (b *Builder) Add(owner []byte, typ uint16, ttl uint32, rdata []byte) error {
	var buf [wire.MaxName + 1]byte
	name := buf[:copy(buf[:], owner)]
	wire.Lower(name, name)
	if !wire.Below(name, b.origin) {
		b.warn("record %s is not in zone %s: left out", wire.Text(owner), wire.Text(b.origin))
		return nil
	}
	switch typ {
	case typeNSEC3, typeNSEC3PARAM:
		return fmt.Errorf("%w, dropping RR: %s for zone: %s", ErrNSEC3, wire.Text(owner), wire.Text(b.origin))
	case wire.TypeSOA:
		if len(name) != len(b.origin) {
			b.warn("SOA record of %s is not at the apex of zone %s: left out", wire.Text(owner), wire.Text(b.origin))
			return nil
		}
	}
	n := b.node(name, wire.Hash(name))
	stored, err := b.stored(typ, rdata)
	if err != nil {
		return fmt.Errorf("%s: %w", wire.Text(owner), err)
	}
	b.append(n, draftRecord{next: -1, typ: typ, ttl: ttl, data: b.data.add(stored), bytes: uint32(len(stored))})
	return nil
}

func (b *Builder) append(n int32, r draftRecord) {
	i := int32(len(b.recs))
	b.recs = append(b.recs, r)
	d := &b.nodes[n]
	if d.first < 0 {
		d.first = i
	} else {
		b.recs[d.last].next = i
	}
	d.last = i
	switch r.typ {
	case wire.TypeNS:
		if n != 0 {
			d.flags |= isCut
		}
	case wire.TypeDNAME:
		d.flags |= hasDNAME
	case wire.TypeCNAME:
		d.flags |= hasCNAME
	}
}

// node is the number of a name's node. It is made if it is not there, with those above it.
func (b *Builder) node(name []byte, hash uint64) int32 {
	prefix := name[:len(name)-len(b.origin)]
	mask := uint64(len(b.index) - 1)
	i := hash & mask
	for ; b.index[i] != 0; i = (i + 1) & mask {
		n := int32(b.index[i] - 1)
		if d := &b.nodes[n]; d.hash == hash && string(b.prefix(d)) == string(prefix) {
			return n
		}
	}
	parent := int32(-1)
	if len(prefix) > 0 {
		up := wire.Parent(name)
		parent = b.node(up, wire.Hash(up))
		if string(wire.FirstLabel(name)) == "*" {
			b.nodes[parent].flags |= hasWildcard
		}
	}
	n := int32(len(b.nodes))
	b.buf = append(append(b.buf[:0], byte(len(prefix))), prefix...)
	b.nodes = append(b.nodes, draft{name: b.names.add(b.buf), hash: hash, parent: parent, first: -1, last: -1})
	b.enter(n)
	return n
}

// enter puts a node into the index.
func (b *Builder) enter(n int32) {
	if len(b.nodes)*2 > len(b.index) {
		b.index = make([]uint32, 2*len(b.index))
		for i := range b.nodes[:len(b.nodes)-1] {
			b.place(int32(i))
		}
	}
	b.place(n)
}

func (b *Builder) place(n int32) {
	mask := uint64(len(b.index) - 1)
	i := b.nodes[n].hash & mask
	for b.index[i] != 0 {
		i = (i + 1) & mask
	}
	b.index[i] = uint32(n + 1)
}

func (b *Builder) prefix(d *draft) []byte {
	p := b.names.at(d.name)
	return p[1 : 1+int(p[0])]
}

// stored is a record as node.go has it, from the length of the RDATA on. It holds until the next call.
func (b *Builder) stored(typ uint16, rdata []byte) ([]byte, error) {
	var fix [4]byte
	fixes := 0
	data := append(b.buf[:0], make([]byte, 5+len(fix))...) // room for the header
	lead, names, point := rdataNames(typ)
	rest := rdata
	if names > 0 {
		if len(rest) < lead {
			return nil, fmt.Errorf("data of type %d is too short", typ)
		}
		data, rest = append(data, rest[:lead]...), rest[lead:]
		for ; names > 0; names-- {
			n := wire.NameLen(rest)
			if n == 0 {
				return nil, fmt.Errorf("data of type %d has a bad name", typ)
			}
			at := len(data)
			data = append(data, rest[:n]...)
			if lowered(typ) {
				wire.Lower(data[at:], data[at:])
			}
			if name := data[at:]; point && wire.Below(name, b.origin) && len(b.origin) > 1 {
				data = data[:len(data)-len(b.origin)+2]
				binary.BigEndian.PutUint16(fix[2*fixes:], uint16(len(data)-2-5-len(fix)))
				fixes++
			}
			rest = rest[n:]
		}
	}
	data = append(data, rest...)
	b.buf = data
	head := data[len(fix)-2*fixes:]
	binary.BigEndian.PutUint16(head, uint16(len(rdata)))
	binary.BigEndian.PutUint16(head[2:], uint16(len(data)-5-len(fix)))
	head[4] = byte(fixes)
	copy(head[5:], fix[:2*fixes])
	return head, nil
}

// rdataNames tells where names stand in the RDATA of a type: behind how many octets, how
// many, and whether they may be compressed (RFC 3597 §4).
func rdataNames(typ uint16) (lead, names int, point bool) {
	switch typ {
	case wire.TypeNS, wire.TypeCNAME, wire.TypePTR:
		return 0, 1, true
	case wire.TypeMX:
		return 2, 1, true
	case wire.TypeSOA:
		return 0, 2, true
	case wire.TypeSRV:
		return 6, 1, false
	case wire.TypeDNAME:
		return 0, 1, false
	case typeSVCB, typeHTTPS:
		return 2, 1, false
	}
	return 0, 0, false
}

// lowered reports whether the names of a type are kept in lower case.
func lowered(typ uint16) bool {
	switch typ {
	case wire.TypeNS, wire.TypeCNAME, wire.TypeMX, wire.TypeSOA, typeSVCB, typeHTTPS:
		return true
	}
	return false
}

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
	z := &Zone{origin: b.origin, nodes: len(b.nodes)}
	b.index = nil
	var out arena
	places := make([]uint32, len(b.nodes))
	var order []int32
	for n := range b.nodes {
		d := &b.nodes[n]
		if d.parent >= 0 {
			if up := b.nodes[d.parent].flags; up&(isCut|hasDNAME|occluded) != 0 {
				d.flags |= occluded // nodes stand behind their parents
			}
		}
		node, err := b.encode(d, &order)
		if err != nil {
			return nil, err
		}
		places[n] = out.add(node)
	}
	z.chunks, z.records = out.chunks, b.kept
	b.names, b.data, b.recs = arena{}, arena{}, nil

	size := 64
	for size < len(b.nodes)*2 {
		size *= 2
	}
	z.index = make([]uint64, size)
	for n := range b.nodes {
		i := b.nodes[n].hash & uint64(size-1)
		for z.index[i] != 0 {
			i = (i + 1) & uint64(size-1)
		}
		z.index[i] = b.nodes[n].hash>>32<<32 | uint64(places[n])
	}
	z.apex = z.at(places[0])
	return z, nil
}

// encode is the node of a draft. It holds until the next call.
func (b *Builder) encode(d *draft, order *[]int32) ([]byte, error) {
	prefix := b.prefix(d)
	out := append(append(b.buf[:0], d.flags, byte(len(prefix))), prefix...)
	recs := (*order)[:0]
	for i := d.first; i >= 0; i = b.recs[i].next {
		recs = append(recs, i)
	}
	*order = recs
	slices.SortStableFunc(recs, func(x, y int32) int { return int(b.recs[x].typ) - int(b.recs[y].typ) })
	count := len(out)
	out = append(out, 0, 0)
	sets := 0
	for ; len(recs) > 0; sets++ {
		n := 1
		for n < len(recs) && b.recs[recs[n]].typ == b.recs[recs[0]].typ {
			n++
		}
		out = b.encodeSet(out, recs[:n])
		recs = recs[n:]
	}
	binary.BigEndian.PutUint16(out[count:], uint16(sets))
	b.buf = out
	name := func() string { return wire.Text(append(prefix[:len(prefix):len(prefix)], b.origin...)) }
	if d.flags&hasCNAME != 0 && sets > 1 && !dnssecOnly(Node(out)) {
		b.warn("%s has a CNAME record and other data", name())
	}
	if len(out) >= chunkSize {
		return nil, fmt.Errorf("%s has more than %d octets of data", name(), chunkSize)
	}
	return out, nil
}

// encodeSet appends an RRset. It holds a record once (RFC 2181 §5), and the last SOA record only.
func (b *Builder) encodeSet(out []byte, recs []int32) []byte {
	typ := b.recs[recs[0]].typ
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
		r := &b.recs[i]
		data := b.data.at(r.data)[:r.bytes]
		again := seen[string(data)]
		for j := 0; seen == nil && j < k && !again; j++ {
			other := &b.recs[recs[j]]
			again = bytes.Equal(b.data.at(other.data)[:other.bytes], data)
		}
		if again {
			continue
		}
		if seen != nil {
			seen[string(data)] = true
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
