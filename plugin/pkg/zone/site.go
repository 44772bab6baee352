package zone

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Site is a name of a zone that is being changed: what stands there now, and after the changes so far. It belongs to
// its Change.
type Site struct {
	by     *Change
	prefix []byte
	was    Node // nil if the name did not exist
	hashed bool // it is of NSEC3 records
	sets   []siteSet
}

// siteSet is an RRset in the making. Records are as node.go has them, with their TTLs; they are replaced, never written
// to.
type siteSet struct {
	typ  uint16
	recs []Records
	sigs []Records
}

// newSite reads a node.
func newSite(by *Change, prefix []byte, was Node) *Site {
	s := &Site{by: by, prefix: prefix, was: was}
	if was == nil {
		return s
	}
	for set := range was.Sets() {
		in := siteSet{typ: set.Type(), recs: set.Records().split()}
		if sigs := set.Signatures(); sigs != nil {
			in.sigs = sigs.Records().split()
		}
		s.sets = append(s.sets, in)
	}
	return s
}

// split is records one by one.
func (r Records) split() (all []Records) {
	for ; len(r) > 0; r = r.Next() {
		all = append(all, r[:len(r)-len(r.Next()):len(r)-len(r.Next())])
	}
	return all
}

// set is the set of a type, nil if there is none.
func (s *Site) set(typ uint16) *siteSet {
	for i := range s.sets {
		if s.sets[i].typ == typ {
			return &s.sets[i]
		}
	}
	return nil
}

// Empty reports whether there are no records.
func (s *Site) Empty() bool {
	return !slices.ContainsFunc(s.sets, func(t siteSet) bool { return len(t.recs) > 0 })
}

// Apex reports whether the name is the zone's.
func (s *Site) Apex() bool { return len(s.prefix) == 0 }

// Name is the name in wire form.
func (s *Site) Name() []byte {
	return append(append(make([]byte, 0, len(s.prefix)+len(s.by.now.origin)), s.prefix...), s.by.now.origin...)
}

// Types is the types of which there are records, in their order; they are gathered before the first is given.
func (s *Site) Types() []uint16 {
	types := make([]uint16, 0, len(s.sets))
	for i := range s.sets {
		if len(s.sets[i].recs) > 0 {
			types = append(types, s.sets[i].typ)
		}
	}
	return types
}

// Len is how many records of a type there are.
func (s *Site) Len(typ uint16) int {
	if set := s.set(typ); set != nil {
		return len(set.recs)
	}
	return 0
}

// TTL is the TTL of the records of a type, 0 if there are none.
func (s *Site) TTL(typ uint16) uint32 {
	if set := s.set(typ); set != nil && len(set.recs) > 0 {
		return set.recs[0].TTL()
	}
	return 0
}

// RDatas is the RDATA of the records of a type, uncompressed; each holds until the next one.
func (s *Site) RDatas(typ uint16) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		set := s.set(typ)
		if set == nil {
			return
		}
		var buf []byte
		for _, r := range set.recs {
			buf = r.AppendRData(buf[:0], s.by.now.origin)
			if !yield(buf) {
				return
			}
		}
	}
}

// Has reports whether there is a record with that data. Names in it are compared without regard to case.
func (s *Site) Has(typ uint16, rdata []byte) bool {
	set := s.set(typ)
	return set != nil && set.index(s.by.now.origin, rdata) >= 0
}

// index is the number of the record with that data, -1 if there is none.
func (t *siteSet) index(origin, rdata []byte) int { return indexOf(t.recs, t.typ, origin, rdata) }

// indexOf is the number of the record of a type with that data, -1 if there is none.
func indexOf(recs []Records, typ uint16, origin, rdata []byte) int {
	want := canonical(typ, bytes.Clone(rdata))
	var buf []byte
	return slices.IndexFunc(recs, func(r Records) bool {
		if r.plain() != len(want) {
			return false
		}
		buf = canonical(typ, r.AppendRData(buf[:0], origin))
		return bytes.Equal(buf, want)
	})
}

// canonical is data with its names in lower case, those of SVCB and HTTPS records, too. Data that is too short for
// its type's names stays as it is.
func canonical(typ uint16, rdata []byte) []byte {
	if service(typ) && len(rdata) > 2 {
		n := wire.NameLen(rdata[2:])
		wire.Lower(rdata[2:2+n], rdata[2:2+n])
	}
	lowerNames(typ, rdata)
	return rdata
}

// Add adds a record, or gives one that is there another TTL: all records of an RRset have the same (RFC 2181 §5.2), so
// those that are there take it, too. An RRSIG record goes to the records that it covers, with its own TTL. All is
// copied. An error tells that the data is not of the type's form.
func (s *Site) Add(typ uint16, ttl uint32, rdata []byte) error {
	if typ == wire.TypeRRSIG {
		return s.addSignature(ttl, rdata)
	}
	set := s.place(typ)
	if at := set.index(s.by.now.origin, rdata); at < 0 {
		rec, err := s.by.pack(typ, ttl, rdata)
		if err != nil {
			s.drop(typ)
			return fmt.Errorf("%s: %w", wire.Text(s.Name()), err)
		}
		set.recs = append(slices.Clip(set.recs), rec)
	}
	set.setTTL(ttl)
	return nil
}

// place is the set of a type, with nothing in it if there was none.
func (s *Site) place(typ uint16) *siteSet {
	if set := s.set(typ); set != nil {
		return set
	}
	// Sets stand in the order of their types, as in a node.
	at, _ := slices.BinarySearchFunc(s.sets, typ, func(t siteSet, typ uint16) int { return int(t.typ) - int(typ) })
	s.sets = slices.Insert(s.sets, at, siteSet{typ: typ})
	return &s.sets[at]
}

// addSignature is Add for an RRSIG record. What it covers may come later.
func (s *Site) addSignature(ttl uint32, rdata []byte) error {
	rec, err := s.by.pack(wire.TypeRRSIG, ttl, rdata)
	if err != nil {
		return fmt.Errorf("%s: %w", wire.Text(s.Name()), err)
	}
	set := s.place(binary.BigEndian.Uint16(rdata))
	if at := indexOf(set.sigs, wire.TypeRRSIG, s.by.now.origin, rdata); at >= 0 {
		set.sigs[at] = rec
		return nil
	}
	set.sigs = append(slices.Clip(set.sigs), rec)
	return nil
}

// removeSignature is Remove for an RRSIG record.
func (s *Site) removeSignature(rdata []byte) bool {
	if len(rdata) < 2 {
		return false
	}
	typ := binary.BigEndian.Uint16(rdata)
	set := s.set(typ)
	if set == nil {
		return false
	}
	at := indexOf(set.sigs, wire.TypeRRSIG, s.by.now.origin, rdata)
	if at < 0 {
		return false
	}
	set.sigs = slices.Delete(slices.Clone(set.sigs), at, at+1)
	s.drop(typ)
	return true
}

// setTTL gives all records a TTL.
func (t *siteSet) setTTL(ttl uint32) {
	for _, recs := range [...][]Records{t.recs, t.sigs} {
		for i, r := range recs {
			if r.TTL() != ttl {
				recs[i] = bytes.Clone(r)
				binary.BigEndian.PutUint32(recs[i], ttl)
			}
		}
	}
}

// drop takes a set away that has nothing left. Signatures of no records are left, for they may be removed next, or
// get records again; a node has none of them.
func (s *Site) drop(typ uint16) {
	s.sets = slices.DeleteFunc(s.sets, func(t siteSet) bool { return t.typ == typ && len(t.recs)+len(t.sigs) == 0 })
}

// Remove takes a record away. It reports whether it was there.
func (s *Site) Remove(typ uint16, rdata []byte) bool {
	if typ == wire.TypeRRSIG {
		return s.removeSignature(rdata)
	}
	set := s.set(typ)
	if set == nil {
		return false
	}
	at := set.index(s.by.now.origin, rdata)
	if at < 0 {
		return false
	}
	set.recs = slices.Delete(slices.Clone(set.recs), at, at+1)
	s.drop(typ)
	return true
}

// RemoveType takes all records of a type away, with their signatures. It reports whether there were some.
func (s *Site) RemoveType(typ uint16) bool {
	n := s.Len(typ)
	s.sets = slices.DeleteFunc(s.sets, func(t siteSet) bool { return t.typ == typ })
	return n > 0
}

// Sign makes sigs, the RDATA of RRSIG records, the signatures of a type, in place of those that were there. One that
// comes twice is one, as what a delta removes is removed once.
func (s *Site) Sign(typ uint16, sigs [][]byte) error {
	set := s.set(typ)
	if set == nil || len(set.recs) == 0 {
		return fmt.Errorf("%s has no records of type %d to sign", wire.Text(s.Name()), typ)
	}
	set.sigs = nil
	for _, rdata := range sigs {
		rec, err := s.by.pack(wire.TypeRRSIG, set.recs[0].TTL(), rdata)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(set.sigs, func(r Records) bool { return bytes.Equal(r, rec) }) {
			set.sigs = append(set.sigs, rec)
		}
	}
	return nil
}

// Signatures is the RDATA of the signatures of a type.
func (s *Site) Signatures(typ uint16) (sigs [][]byte) {
	if set := s.set(typ); set != nil {
		for _, r := range set.sigs {
			sigs = append(sigs, bytes.Clone(r.Data()))
		}
	}
	return sigs
}

// encode is the node that the site becomes, with those of its flags that its records tell.
func (s *Site) encode(b []byte) ([]byte, error) {
	// The other flags are about names above and below, which a site does not know.
	flags := byte(0)
	b = append(append(b[:0], 0, byte(len(s.prefix))), s.prefix...)
	counted := len(b)
	b = append(b, 0, 0)
	n := 0
	for _, set := range s.sets {
		switch {
		case len(set.recs) == 0:
			continue
		case set.typ == wire.TypeNS && !s.Apex():
			flags |= isCut
		case set.typ == wire.TypeDNAME:
			flags |= hasDNAME
		case set.typ == wire.TypeCNAME:
			flags |= hasCNAME
		}
		if len(set.recs) > math.MaxUint16 {
			return nil, fmt.Errorf("%s has more than %d records of type %d", wire.Text(s.Name()), math.MaxUint16, set.typ)
		}
		n++
		start := len(b)
		if b = appendSet(b, set.typ, set.recs); len(set.sigs) > 0 {
			b[start+4] |= setSigned >> 24
			b = appendSet(b, wire.TypeRRSIG, set.sigs)
		}
	}
	b[0] = flags
	binary.BigEndian.PutUint16(b[counted:], uint16(n))
	return b, nil
}

func appendSet(b []byte, typ uint16, recs []Records) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint16(b, typ)
	b = binary.BigEndian.AppendUint16(b, uint16(len(recs)))
	b = append(b, 0, 0, 0, 0)
	for _, r := range recs {
		b = append(b, r...)
	}
	binary.BigEndian.PutUint32(b[start+4:], uint32(len(b)-start-setHeader))
	return b
}

// SameData reports whether two RDATA of a type are the same, but for the case of names.
func SameData(typ uint16, a, b []byte) bool {
	return len(a) == len(b) && bytes.Equal(canonical(typ, bytes.Clone(a)), canonical(typ, bytes.Clone(b)))
}
