package zone

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Builder gathers the records of a zone. It keeps them packed, so it needs little more memory than
// the Zone that Build makes of it. It belongs to one goroutine.
type Builder struct {
	origin []byte
	warn   func(format string, args ...any)
	nsec3  bool    // NSEC3 records are taken
	digest bool    // there is a ZONEMD record at the apex
	asIs   bool    // targets keep their case; see KeepCase
	folds  bool    // see FoldCase
	adopts bool    // a SOA record of another owner is taken for that of the apex, if there is none
	stray  *Record // the last such, nil if there is none

	places places // where records stand in files, as far as that is told

	names arena // lower prefixes, each behind its length
	nodes rows[draft]
	index []uint32 // open addressing: number of the node plus one
	recs  rows[draftRecord]
	data  arena // RDATA with pointers cut out; see stored

	turns eventloop.Turns // a large zone takes seconds
	buf   []byte
	order []int32 // of a node's records
	kept  int     // records that are no repetitions
	mixed int     // RRsets with several TTLs
}

// draft is a node in the making.
type draft struct {
	hash        [2]uint32 // of the whole name, its lower half first
	name        uint32    // place of the prefix
	parent      int32
	first, last int32 // records, -1 for none
	flags       byte
	has         byte
}

// What a draft has.
const (
	hasNSEC  = 1 << iota // an NSEC record
	hasNSEC3             // NSEC3 records
	hasOther             // records that are neither NSEC3 nor their signatures, or names below it
)

func (d *draft) fullHash() uint64 { return uint64(d.hash[1])<<32 | uint64(d.hash[0]) }

// onlyNSEC3 reports whether there is nothing but NSEC3 records at the node.
func (d *draft) onlyNSEC3() bool { return d.has&(hasNSEC3|hasOther) == hasNSEC3 }

type draftRecord struct {
	next  int32
	ttl   uint32
	data  uint32 // place of what node.go calls a record, without its TTL
	typ   uint16
	cover uint16 // of a signature: the type that it covers
}

const draftRecordSize = 16 // octets

// Errors of Builder.
var (
	ErrNoSOA  = errors.New("no SOA record")
	ErrNSEC3  = errors.New("NSEC3 zone is not supported")
	ErrTooBig = errors.New("zone is larger than 4 GiB")
)

// NewBuilder is a Builder for the zone origin. What is wrong with single records, which are
// then left out, is told to warn.
func NewBuilder(origin []byte, warn func(format string, args ...any)) *Builder {
	b := &Builder{origin: append([]byte(nil), origin...), index: make([]uint32, 16), warn: warn}
	wire.Lower(b.origin, b.origin)
	b.node(b.origin, wire.Hash(b.origin))
	return b
}

// AllowNSEC3 makes Add take NSEC3 and NSEC3PARAM records (RFC 5155), which are an error otherwise.
func (b *Builder) AllowNSEC3() { b.nsec3 = true }

// KeepCase leaves the targets of SVCB and HTTPS records as they come, also where they are not signed: what is signed is
// the octets (RFC 4034 §6.2 does not list these types), and signatures may come later, alone.
func (b *Builder) KeepCase() { b.asIs = true }

// FoldCase makes one record of those that differ in the case of names in their data only (RFC 4343 §3). A Change takes
// one of them for the other, so who makes changes needs it. What others change, record by record, has to be as they
// have it, and some have both.
func (b *Builder) FoldCase() { b.folds = true }

// AdoptSOA makes Add keep the last SOA record whose owner is not the apex. It counts as that of the apex if no
// other comes.
func (b *Builder) AdoptSOA() { b.adopts = true }

// Class tells whether a record may be added by its class. One of another class than IN is left out (RFC 1035 §5.2),
// with a warning.
func (b *Builder) Class(owner []byte, class uint16) bool {
	if class != wire.ClassIN {
		b.warn("%srecord %s has class %s, not IN: left out", b.places.next(), wire.Text(owner), dns.Class(class))
	}
	return class == wire.ClassIN
}

// Add adds a record of class IN. owner and rdata are uncompressed wire form; they are copied. A record
// whose owner is not in the zone is left out, and so is one of a type of messages, and one that is there already.
func (b *Builder) Add(owner []byte, typ uint16, ttl uint32, rdata []byte) error {
	b.turns.Done()
	var buf [wire.MaxName + 1]byte
	name := buf[:copy(buf[:], owner)]
	wire.Lower(name, name)
	if typ == wire.TypeSOA && b.adopts && string(name) != string(b.origin) {
		b.stray = &Record{Owner: bytes.Clone(owner), Type: typ, TTL: ttl, RData: bytes.Clone(rdata)}
		return nil
	}
	if !wire.Below(name, b.origin) {
		b.warn("%srecord %s is not in zone %s: left out", b.places.next(), wire.Text(owner), wire.Text(b.origin))
		return nil
	}
	switch {
	case (typ == typeNSEC3 || typ == typeNSEC3PARAM) && !b.nsec3:
		return fmt.Errorf("%w, dropping RR: %s for zone: %s", ErrNSEC3, wire.Text(owner), wire.Text(b.origin))
	case wire.IsMeta(typ):
		b.warn("%srecord %s has type %s, which is for messages only: left out", b.places.next(), wire.Text(owner), typeText(typ))
		return nil
	case typ == wire.TypeSOA && len(name) != len(b.origin):
		b.warn("%sSOA record of %s is not at the apex of zone %s: left out", b.places.next(), wire.Text(owner), wire.Text(b.origin))
		return nil
	}
	if service(typ) && !agrees(rdata) {
		b.warn("%srecord %s, type %s, contradicts itself: clients pass it by, and other servers may refuse the zone", b.places.next(), wire.Text(owner), typeText(typ))
	}
	r := draftRecord{next: -1, typ: typ, ttl: ttl}
	if typ == wire.TypeRRSIG {
		if len(rdata) < 18 {
			return fmt.Errorf("%s: data of type RRSIG is too short", wire.Text(owner))
		}
		r.cover = u16(rdata)
	}
	stored, err := b.stored(typ, rdata)
	if err != nil {
		return fmt.Errorf("%s: %w", wire.Text(owner), err)
	}
	r.data = b.data.add(stored)
	b.append(b.node(name, wire.Hash(name)), r)
	return nil
}

// adopt adds the SOA record that has another owner, if there is none of the apex.
func (b *Builder) adopt() error {
	if b.stray == nil {
		return nil
	}
	owner, apex := wire.Text(b.stray.Owner), wire.Text(b.origin)
	for i := b.nodes.at(0).first; i >= 0; i = b.recs.at(i).next {
		if b.recs.at(i).typ == wire.TypeSOA {
			b.warn("SOA record of %s is not at the apex of zone %s: left out", owner, apex)
			return nil
		}
	}
	b.warn("SOA record of %s is not at the apex of zone %s: taken for the zone's, which has none", owner, apex)
	return b.Add(b.origin, wire.TypeSOA, b.stray.TTL, b.stray.RData)
}

func (b *Builder) append(n int32, r draftRecord) {
	i := b.recs.add(r)
	b.places.add()
	d := b.nodes.at(n)
	if d.first < 0 {
		d.first = i
	} else {
		b.recs.at(d.last).next = i
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
	case typeNSEC:
		d.has |= hasNSEC
	case typeNSEC3:
		d.has |= hasNSEC3
	case wire.TypeZONEMD:
		b.digest = b.digest || n == 0
	}
	if r.typ != typeNSEC3 && r.cover != typeNSEC3 {
		d.has |= hasOther
	}
}

// node is the number of a name's node. It is made if it is not there, with those above it.
func (b *Builder) node(name []byte, hash uint64) int32 {
	prefix := name[:len(name)-len(b.origin)]
	mask := uint64(len(b.index) - 1)
	i := hash & mask
	for ; b.index[i] != 0; i = (i + 1) & mask {
		n := int32(b.index[i] - 1)
		if d := b.nodes.at(n); d.fullHash() == hash && string(b.prefix(d)) == string(prefix) {
			return n
		}
	}
	parent := int32(-1)
	if len(prefix) > 0 {
		up := wire.Parent(name)
		parent = b.node(up, wire.Hash(up))
		b.nodes.at(parent).has |= hasOther
		if string(wire.FirstLabel(name)) == "*" {
			b.nodes.at(parent).flags |= hasWildcard
		}
	}
	b.buf = append(append(b.buf[:0], byte(len(prefix))), prefix...)
	n := b.nodes.add(draft{name: b.names.add(b.buf), hash: [2]uint32{uint32(hash), uint32(hash >> 32)}, parent: parent, first: -1, last: -1})
	b.enter(n)
	return n
}

// enter puts a node into the index.
func (b *Builder) enter(n int32) {
	if b.nodes.n*2 > len(b.index) {
		b.index = make([]uint32, 2*len(b.index))
		for i := range n {
			b.turns.Done()
			b.place(i)
		}
	}
	b.place(n)
}

func (b *Builder) place(n int32) {
	mask := uint64(len(b.index) - 1)
	i := b.nodes.at(n).fullHash() & mask
	for b.index[i] != 0 {
		i = (i + 1) & mask
	}
	b.index[i] = uint32(n + 1)
}

func (b *Builder) prefix(d *draft) []byte {
	p := b.names.at(d.name)
	return p[1 : 1+int(p[0])]
}

// record is the data of a draft record, as stored made it.
func (b *Builder) record(r *draftRecord) []byte {
	data := b.data.at(r.data)
	return data[:5+2*int(data[4])+int(u16(data[2:]))]
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
