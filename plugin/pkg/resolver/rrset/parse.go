package rrset

import (
	"encoding/binary"
	"errors"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Sections of a Message.
const (
	Answer = iota
	Authority
	Additional
	sections
)

// Limits of what one reply may hold. A resolver that took more could be made to work
// without end.
const (
	MaxRecords = 256 // of one RRset
	MaxSigs    = 8   // that are kept of one RRset
	maxSets    = 1024
)

// Errors of Parse.
var (
	ErrMalformed = errors.New("malformed message")
	ErrTooMany   = errors.New("an RRset has too many records")
)

// Message is a reply.
type Message struct {
	Flags   uint16 // the header's second word
	Rcode   int    // with the upper bits of the OPT record
	EDNS    bool   // there is an OPT record
	Name    string // the question's, in lower case
	Type    uint16
	Subnet  string           // the data of the client subnet option (RFC 7871), empty if there is none
	Section [sections][]*Set // without OPT and RRSIG records that belong to a Set
	Size    int              // octets
}

// AA, TC, RA and AD are flags of the header.
func (m *Message) AA() bool { return m.Flags&wire.FlagAA != 0 }
func (m *Message) TC() bool { return m.Flags&wire.FlagTC != 0 }
func (m *Message) RA() bool { return m.Flags&wire.FlagRA != 0 }

// Parse reads a reply with one question. Records of classes other than IN are left out.
// b is only read, and not kept.
//
// The work is linear in the message's length: names are worth what wire.Effort says,
// and RRsets are found by a map once there are many.
func Parse(b []byte) (*Message, error) {
	if len(b) < wire.HeaderLen || binary.BigEndian.Uint16(b[4:]) != 1 {
		return nil, ErrMalformed
	}
	n := wire.NameLen(b[wire.HeaderLen:])
	if n == 0 || wire.HeaderLen+n+4 > len(b) {
		return nil, ErrMalformed
	}
	m := &Message{Flags: binary.BigEndian.Uint16(b[2:]), Size: len(b)}
	m.Rcode = int(m.Flags & 0xF)
	p := parser{msg: b, off: wire.HeaderLen + n + 4, left: wire.EffortOf(len(b)), m: m}
	m.Name = p.lower(b[wire.HeaderLen : wire.HeaderLen+n])
	m.Type = binary.BigEndian.Uint16(b[wire.HeaderLen+n:])
	for s := range sections {
		p.open, p.index = p.open[:0], nil
		for range binary.BigEndian.Uint16(b[6+2*s:]) {
			if err := p.record(s); err != nil {
				return nil, err
			}
		}
		p.close(s)
	}
	if err := p.reunite(); err != nil {
		return nil, err
	}
	return m, nil
}

type parser struct {
	msg   []byte
	off   int
	left  wire.Effort
	m     *Message
	open  []draft       // the sets of the section
	index map[draft]int // of open, once there are many; keys have name and type only
	owner [wire.MaxName + 1]byte
	rdata []byte
	last  string // the owner of the record before
	lone  []lone // signatures without what they sign
}

// draft is a Set that is being read.
type draft struct {
	name string
	typ  uint16
	*body
}

type body struct {
	ttl       uint32
	n, nsigs  int
	data, sig []byte
}

func (p *parser) lower(name []byte) string {
	b := p.owner[:len(name)]
	wire.Lower(b, name)
	if p.last == string(b) {
		return p.last
	}
	p.last = string(b)
	return p.last
}

// name appends the name at off in full to b.
func (p *parser) name(b []byte, off int) (full []byte, next int) {
	plain, next := p.left.Name(p.msg, off)
	if next == 0 || plain == 0 {
		return b, 0
	}
	full, ok := wire.AppendNameAt(b, p.msg, off)
	if !ok {
		return b, 0
	}
	return full, next
}

const manySets = 16 // in a section: then they are indexed

// Records of one RRset need not stand together, and their TTLs may differ; they are
// levelled to the least (RFC 2181 §5.2). The same record twice counts once.

// options looks for options that a resolver cares for. What is no list of options has none.
func (p *parser) options(b []byte) {
	for len(b) >= 4 {
		n := 4 + int(binary.BigEndian.Uint16(b[2:]))
		if n > len(b) {
			return
		}
		if binary.BigEndian.Uint16(b) == wire.OptionECS && n >= 8 && p.m.Subnet == "" {
			p.m.Subnet = string(b[4:n])
		}
		b = b[n:]
	}
}

// record reads one record into its draft.
func (p *parser) record(s int) error {
	var space [wire.MaxName + 1]byte
	owner, at := p.name(space[:0], p.off)
	if at == 0 || at+10 > len(p.msg) {
		return ErrMalformed
	}
	typ, class := binary.BigEndian.Uint16(p.msg[at:]), binary.BigEndian.Uint16(p.msg[at+2:])
	ttl := binary.BigEndian.Uint32(p.msg[at+4:])
	data := at + 10
	end := data + int(binary.BigEndian.Uint16(p.msg[at+8:]))
	if end > len(p.msg) {
		return ErrMalformed
	}
	p.off = end
	switch {
	case typ == wire.TypeOPT:
		if s == Additional && !p.m.EDNS {
			p.m.EDNS = true
			p.m.Rcode |= int(p.msg[at+4]) << 4
			p.options(p.msg[data:end])
		}
		return nil
	case class != wire.ClassIN:
		return nil
	}
	rdata, ok := p.expand(typ, data, end)
	if !ok {
		return ErrMalformed
	}
	name := p.lower(owner)
	covered := typ
	if typ == wire.TypeRRSIG {
		covered = binary.BigEndian.Uint16(rdata)
	}
	d, err := p.draft(name, covered)
	if err != nil {
		return err
	}
	return d.add(typ == wire.TypeRRSIG, ttl, rdata)
}

// add adds a record to the draft, once.
func (d *draft) add(sig bool, ttl uint32, rdata []byte) error {
	if ttl > 1<<31-1 { // the top bit (RFC 8767 §4): the store bounds it
		ttl = 1<<31 - 1
	}
	if sig {
		if d.nsigs < MaxSigs && !held(d.sig, rdata) {
			d.nsigs++
			d.sig = appendData(d.sig, rdata)
		}
		// Only the original TTL is signed: with a longer one, what is signed would be kept for longer than its zone
		// wants (RFC 4035 §5.3.3).
		d.ttl = min(d.ttl, binary.BigEndian.Uint32(rdata[4:]))
		if d.n == 0 {
			d.ttl = min(d.ttl, ttl)
		}
		return nil
	}
	if d.n > 0 && (Single(d.typ) || held(d.data, rdata)) {
		return nil
	}
	if d.n++; d.n > MaxRecords {
		return ErrTooMany
	}
	d.ttl = min(d.ttl, ttl)
	d.data = appendData(d.data, rdata)
	return nil
}

// Single reports whether there can be one record of a type at a name (RFC 2181 §10.1, RFC 6672 §2.4). Where a server
// tells more, the first counts: an alias that leads to two names leads nowhere.
func Single(typ uint16) bool {
	return typ == wire.TypeCNAME || typ == wire.TypeDNAME || typ == wire.TypeSOA
}

func held(data, rdata []byte) bool {
	for len(data) >= 2 {
		n := 2 + int(data[0])<<8 + int(data[1])
		if string(data[2:n]) == string(rdata) {
			return true
		}
		data = data[n:]
	}
	return false
}

func appendData(b, rdata []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(rdata)))
	return append(b, rdata...)
}

// draft is that of a name and type: most often the last one.
func (p *parser) draft(name string, typ uint16) (*draft, error) {
	if p.index != nil {
		if i, ok := p.index[draft{name: name, typ: typ}]; ok {
			return &p.open[i], nil
		}
	} else {
		for i := len(p.open) - 1; i >= 0; i-- {
			if p.open[i].typ == typ && p.open[i].name == name {
				return &p.open[i], nil
			}
		}
	}
	if len(p.open) >= maxSets {
		return nil, ErrTooMany
	}
	p.open = append(p.open, draft{name, typ, &body{ttl: 1<<32 - 1}})
	if p.index != nil {
		p.index[draft{name: name, typ: typ}] = len(p.open) - 1
	} else if len(p.open) > manySets {
		p.index = make(map[draft]int, 4*manySets)
		for i := range p.open {
			p.index[draft{name: p.open[i].name, typ: p.open[i].typ}] = i
		}
	}
	return &p.open[len(p.open)-1], nil
}

// lone is signatures of one section that stand there without what they sign.
type lone struct {
	section int
	draft
}

// close makes Sets of the drafts.
func (p *parser) close(s int) {
	if len(p.open) == 0 {
		return
	}
	sets := make([]*Set, 0, len(p.open))
	for i := range p.open {
		d := &p.open[i]
		if d.n == 0 {
			p.lone = append(p.lone, lone{s, *d})
			continue
		}
		set := &Set{Name: d.name, Type: d.typ, TTL: d.ttl, N: uint16(d.n), Sigs: uint16(d.nsigs), split: uint32(len(d.data))}
		set.all = string(append(d.data, d.sig...))
		sets = append(sets, set)
	}
	p.m.Section[s] = sets
}

// There are servers, and middle boxes, that put signatures into another section than
// the RRset. A signature speaks for itself, so it does not matter where it stood.

// reunite gives signatures to what they sign, in whatever section that stands. Those
// that are left are a Set of type RRSIG, as who asks for that type gets them.
func (p *parser) reunite() error {
	if len(p.lone) == 0 {
		return nil
	}
	all := map[draft]*Set{}
	for s := sections - 1; s >= 0; s-- {
		for _, set := range p.m.Section[s] {
			all[draft{name: set.Name, typ: set.Type}] = set
		}
	}
	alone := map[string]*Set{}
	for _, l := range p.lone {
		set := all[draft{name: l.name, typ: l.typ}]
		if set != nil && int(set.Sigs)+l.nsigs <= MaxSigs {
			set.Sigs, set.TTL = set.Sigs+uint16(l.nsigs), min(set.TTL, l.ttl)
			set.set(set.data(), set.sigs()+string(l.sig))
			continue
		}
		if set = alone[l.name]; set == nil {
			set = &Set{Name: l.name, Type: wire.TypeRRSIG, TTL: l.ttl}
			alone[l.name] = set
			p.m.Section[l.section] = append(p.m.Section[l.section], set)
		}
		set.N, set.TTL = set.N+uint16(l.nsigs), min(set.TTL, l.ttl)
		set.set(set.data()+string(l.sig), "")
		if set.N > MaxRecords {
			return ErrTooMany
		}
	}
	return nil
}
