package fetch

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// stream makes a version of a zone out of the records of a transfer, one after the other (RFC 5936 §2.2, RFC 1995 §4):
//
//	whole:        SOA, all others, SOA
//	incremental:  SOA, then for each step: SOA before, what is removed, SOA after, what is added; SOA
//	nothing new:  SOA
type stream struct {
	origin []byte
	old    *zone.Zone // what an incremental transfer builds on, nil if all was asked for
	warn   func(string, ...any)

	state  state
	serial uint32 // of the first SOA record
	first  []byte // its RDATA
	ttl    uint32
	at     uint32 // the serial that the steps lead to so far

	builder *zone.Builder
	steps   *steps
}

// state is what the next record may be.
type state uint8

const (
	begin    state = iota // nothing yet
	second                // after the first SOA record
	whole                 // all records
	removing              // a step's first half
	adding                // a step's second half
	end                   // the last SOA record was there
)

// newStream begins with no record. warn is told of records that are left out.
func newStream(origin []byte, old *zone.Zone, warn func(string, ...any)) *stream {
	return &stream{origin: origin, old: old, warn: warn}
}

var errBehindEnd = errors.New("there are records behind the last SOA record")

// take takes the next record. The error is ErrCurrent if the primary has nothing newer, whatever it sends then.
func (s *stream) take(r zone.Record) error {
	if s.current() {
		return ErrCurrent
	}
	// A primary may speak for its zone only.
	if !wire.Below(r.Owner, s.origin) {
		return fmt.Errorf("record %s is not in zone %s", wire.Text(r.Owner), wire.Text(s.origin))
	}
	if r.Type == wire.TypeSOA {
		if len(r.Owner) != len(s.origin) {
			return fmt.Errorf("SOA record of %s in zone %s", wire.Text(r.Owner), wire.Text(s.origin))
		}
		serial, err := serialOf(r.RData)
		if err != nil {
			return err
		}
		return s.takeSOA(r, serial)
	}
	switch s.state {
	case begin:
		return fmt.Errorf("the first record is no SOA record, but %s of type %d", wire.Text(r.Owner), r.Type)
	case second:
		s.wholeZone()
		fallthrough
	case whole:
		return s.builder.Add(r.Owner, r.Type, r.TTL, r.RData)
	case removing, adding:
		if wire.IsMeta(r.Type) { // no zone here has one, see zone.Builder
			if s.state == adding {
				s.warn("record %s has type %s, which is for messages only: left out", wire.Text(r.Owner), dns.Type(r.Type))
			}
			return nil
		}
		return s.steps.take(r, s.state == removing)
	}
	return errBehindEnd
}

// takeSOA takes an SOA record of the zone, which ends one state and begins another.
func (s *stream) takeSOA(r zone.Record, serial uint32) error {
	switch s.state {
	case begin:
		s.state, s.serial, s.ttl = second, serial, r.TTL
		s.first = append([]byte(nil), r.RData...)
	case second:
		// The second record tells which form it is: an SOA record with our serial begins the first step of an
		// incremental transfer (RFC 1995 §4). The serial must not be the first one, too: then there is nothing
		// between them.
		if s.old != nil && serial == s.old.Serial() && serial != s.serial {
			s.state, s.at = removing, serial
			s.steps = newSteps(s.old, s.warn)
			return s.steps.take(r, true)
		}
		s.wholeZone()
		return s.last(serial)
	case whole:
		return s.last(serial)
	case removing:
		s.state, s.at = adding, serial
		return s.steps.take(r, false)
	case adding:
		// The steps have led to the newest version: this one is the end.
		if s.at == s.serial {
			return s.last(serial)
		}
		if serial != s.at {
			return fmt.Errorf("the steps of an incremental transfer do not meet: %d, then %d", s.at, serial)
		}
		s.state = removing
		return s.steps.take(r, true)
	default:
		return errBehindEnd
	}
	return nil
}

// wholeZone begins with a zone of which all comes.
func (s *stream) wholeZone() {
	s.state = whole
	s.builder = zone.NewBuilder(s.origin, s.warn)
	s.builder.AllowNSEC3()
	s.builder.KeepCase() // a primary may sign the zone later, and send no more than the signatures
}

// last is the SOA record at the end.
func (s *stream) last(serial uint32) error {
	if serial != s.serial {
		return fmt.Errorf("the last SOA record has serial %d, the first one %d", serial, s.serial)
	}
	s.state = end
	return nil
}

// ended reports whether the transfer is complete. Of an incremental one that is one SOA record without anything
// newer, too.
func (s *stream) ended() bool { return s.state == end || s.current() }

// current reports whether of an incremental transfer the first record is there, and tells of nothing newer.
func (s *stream) current() bool { return s.alone() && !zone.Newer(s.serial, s.old.Serial()) }

// alone reports whether of an incremental transfer only the first record is there.
func (s *stream) alone() bool { return s.state == second && s.old != nil }

// build is the version that came.
func (s *stream) build() (*zone.Zone, error) {
	switch {
	case s.state != end:
		return nil, ErrCurrent
	case s.steps != nil:
		return s.steps.build()
	}
	// It came twice, first and last, and belongs to the zone once.
	if err := s.builder.Add(s.origin, wire.TypeSOA, s.ttl, s.first); err != nil {
		return nil, err
	}
	return s.builder.Build()
}

// serialOf is the serial of an SOA record's data.
func serialOf(rdata []byte) (uint32, error) {
	if len(rdata) < 22 {
		return 0, errors.New("an SOA record is too short")
	}
	return binary.BigEndian.Uint32(rdata[len(rdata)-20:]), nil
}
