package zone

import (
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Walk is a way through records, one after the other: those of a zone, or of a Delta. It may be left at any
// record and gone on with later. It belongs to one goroutine; the zone may be replaced meanwhile.
//
//	for rec, ok := w.Next(); ok; rec, ok = w.Next() { … }      record by record
//	for more := true; more; { more = w.Fill(&reply, 16384) }   message by message
type Walk struct {
	origin []byte
	source source

	prefix []byte // owner of the records, without origin
	typ    uint16
	rest   Records // what is left of the RRset

	owner []byte // of the record that Next returned
	rdata []byte
}

// source gives the RRsets of a walk, signatures as sets of their own. It is false at the end.
type source interface {
	nextSet() (prefix []byte, set RRset, ok bool)
}

// Walk goes through all records of the zone in canonical order of their owners (RFC 4034 §6.1), and by type at each
// of them, each type's signatures behind it. The first walk through a zone sorts its names, which takes half a
// second for a million.
func (z *Zone) Walk() *Walk {
	return &Walk{origin: z.origin, source: &zoneSource{z: z, places: z.ordered()}}
}

// Transfer goes through the zone in the order of a transfer (RFC 5936 §2.2): the SOA record, all others in the order of
// Walk, the SOA record again.
func (z *Zone) Transfer() *Walk {
	return &Walk{origin: z.origin, source: &transferSource{zoneSource{z: z, places: z.ordered()}, transferSOA}}
}

// Increment goes through what changed since an earlier version, in the order of an incremental transfer (RFC 1995
// §4): the SOA record, the deltas, of which the last must lead to this version, the SOA record again. Without
// deltas it is the SOA record alone, which says that nothing has.
func (z *Zone) Increment(deltas []*Delta) *Walk {
	return &Walk{origin: z.origin, source: &incrementSource{soa: z.apex.Set(wire.TypeSOA), deltas: deltas, ended: len(deltas) == 0}}
}

// Next is the next record. It holds until the next call.
func (w *Walk) Next() (rec Record, ok bool) {
	if !w.more() {
		return Record{}, false
	}
	w.owner = append(append(w.owner[:0], w.prefix...), w.origin...)
	w.rdata = w.rest.AppendRData(w.rdata[:0], w.origin)
	rec = Record{Owner: w.owner, Type: w.typ, TTL: w.rest.TTL(), RData: w.rdata}
	w.rest = w.rest.Next()
	return rec, true
}

// more makes rest begin with the next record.
func (w *Walk) more() bool {
	for len(w.rest) == 0 {
		prefix, set, ok := w.source.nextSet()
		if !ok {
			return false
		}
		w.prefix, w.typ, w.rest = prefix, set.Type(), set.Records()
	}
	return true
}

// Fill adds records to the answer section of r until it would be longer than limit octets or nothing is left; it
// reports whether something is. A message gets one record at least, unless the next one is too long for any message. r
// must have been begun with a question; if that is for the zone, names point to it.
func (w *Walk) Fill(r *wire.Reply, limit int) bool {
	pointer := r.Pointer(w.origin)
	var again wire.Owner
	var of []byte // whose name again is
	for w.more() {
		data, fix := w.rest.data()
		if len(fix) > 0 && pointer == 0 {
			w.rdata = w.rest.AppendRData(w.rdata[:0], w.origin)
			data, fix = w.rdata, nil
		}
		o := wire.Owner{Prefix: w.prefix, Pointer: pointer, Len: len(w.prefix) + len(w.origin)}
		switch {
		case of != nil && len(w.prefix) > 0 && &of[0] == &w.prefix[0]:
			o = again
		case pointer == 0:
			w.owner = append(append(w.owner[:0], w.prefix...), w.origin...)
			o.Prefix = w.owner
		}
		size := len(o.Prefix) + 2 + 10 + len(data)
		if len(r.Bytes())+size > limit && len(r.Recs()) > 0 {
			return true
		}
		if !r.Relative(wire.Answer, o, w.typ, w.rest.TTL(), data, fix, pointer, w.rest.plain()) {
			return true // it is longer than messages are
		}
		if len(w.prefix) > 0 {
			again, of = o.At(r.Recs()[len(r.Recs())-1]), w.prefix
		}
		w.rest = w.rest.Next()
	}
	return false
}

// zoneSource gives all RRsets of a zone in the order of places.
type zoneSource struct {
	z      *Zone
	places []uint32
	prefix []byte
	rest   []byte // RRsets of the node
	count  int    // how many
	sigs   RRset  // signatures that come next
}

func (s *zoneSource) nextSet() ([]byte, RRset, bool) {
	if set := s.sigs; set != nil {
		s.sigs = nil
		return s.prefix, set, true
	}
	for s.count == 0 {
		if len(s.places) == 0 {
			return nil, nil, false
		}
		n := s.z.at(s.places[0])
		s.places = s.places[1:]
		s.prefix = n.prefix()
		s.rest, s.count = n.sets()
	}
	set := RRset(s.rest)
	s.count--
	s.rest, s.sigs = set.behind(), set.Signatures()
	return s.prefix, set, true
}

// transferSource gives the SOA record first and last.
type transferSource struct {
	zoneSource
	state int
}

const (
	transferSOA  = iota // the SOA record comes next
	transferSigs        // its signatures
	transferRest        // all others
	transferEnd         // the SOA record again
	transferDone
)

func (s *transferSource) nextSet() ([]byte, RRset, bool) {
	soa := s.z.apex.Set(wire.TypeSOA)
	switch s.state {
	case transferSOA:
		s.state = transferSigs
		return nil, soa, soa != nil
	case transferSigs:
		s.state = transferRest
		if sigs := soa.Signatures(); sigs != nil {
			return nil, sigs, true
		}
		fallthrough
	case transferRest:
		prefix, set, ok := s.zoneSource.nextSet()
		if ok && set.Type() == wire.TypeSOA {
			s.sigs = nil
			prefix, set, ok = s.zoneSource.nextSet()
		}
		if ok {
			return prefix, set, true
		}
		s.state = transferEnd
		fallthrough
	case transferEnd:
		s.state = transferDone
		return nil, soa, true
	}
	return nil, nil, false
}

// incrementSource gives an SOA record, deltas, and the SOA record again.
type incrementSource struct {
	soa    RRset
	deltas []*Delta
	delta  deltaSource
	begun  bool
	ended  bool
}

func (s *incrementSource) nextSet() ([]byte, RRset, bool) {
	if !s.begun {
		s.begun = true
		return nil, s.soa, true
	}
	for {
		if prefix, set, ok := s.delta.nextSet(); ok {
			return prefix, set, true
		}
		if len(s.deltas) == 0 {
			break
		}
		s.delta, s.deltas = deltaSource{rest: s.deltas[0].blob}, s.deltas[1:]
	}
	if s.ended {
		return nil, nil, false
	}
	s.ended = true
	return nil, s.soa, true
}
