package fetch

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// reader reads the answer section of a message, record by record, with all names in full.
type reader struct {
	msg  []byte
	off  int
	left int // records of the answer section
	rest int // records behind it

	signed int // where the TSIG record begins that signature found

	owner []byte
	rdata []byte
}

var errMessage = errors.New("a message is cut short or malformed")

// reset begins with a message, which must be an answer without error to the query with that id.
func (r *reader) reset(msg []byte, id uint16) error {
	if len(msg) < wire.HeaderLen {
		return errMessage
	}
	flags := binary.BigEndian.Uint16(msg[2:])
	switch {
	case binary.BigEndian.Uint16(msg) != id || flags&wire.FlagQR == 0:
		return errors.New("a message is no answer to our query")
	// Over TCP there is no reason for it.
	case flags&wire.FlagTC != 0:
		return errors.New("a message is truncated")
	case flags&0xf != 0:
		return fmt.Errorf("the primary answers %s", dns.RcodeToString[int(flags&0xf)])
	}
	r.msg, r.off = msg, wire.HeaderLen
	for range binary.BigEndian.Uint16(msg[4:]) {
		n := wire.NameSpan(msg, r.off)
		if n == 0 || r.off+n+4 > len(msg) {
			return errMessage
		}
		r.off += n + 4
	}
	r.left = int(binary.BigEndian.Uint16(msg[6:]))
	r.rest = int(binary.BigEndian.Uint16(msg[8:])) + int(binary.BigEndian.Uint16(msg[10:]))
	return nil
}

// next is the next record of class IN of the answer section; it holds until the next call.
func (r *reader) next() (rec zone.Record, ok bool, err error) {
	for r.left > 0 {
		r.left--
		head, class, end, err := r.head()
		if err != nil {
			return rec, false, err
		}
		data := r.off
		r.off = end
		// A zone here is of class IN; what else comes is left out.
		if class != wire.ClassIN {
			continue
		}
		if r.rdata, ok = appendRData(r.rdata[:0], r.msg[:end], head.Type, data, end); !ok {
			return rec, false, fmt.Errorf("%w: data of %s, type %d", errMessage, wire.Text(head.Owner), head.Type)
		}
		head.RData = r.rdata
		return head, true, check(head)
	}
	return rec, false, nil
}

// head reads a record up to its data. The owner is in memory of r, in lower case: so it is what zones have.
func (r *reader) head() (rec zone.Record, class uint16, end int, err error) {
	n := wire.NameSpan(r.msg, r.off)
	var ok bool
	if r.owner, ok = wire.AppendNameAt(r.owner[:0], r.msg, r.off); !ok || n == 0 || r.off+n+10 > len(r.msg) {
		return rec, 0, 0, errMessage
	}
	wire.Lower(r.owner, r.owner)
	h := r.msg[r.off+n:]
	r.off += n + 10
	end = r.off + int(binary.BigEndian.Uint16(h[8:]))
	if end > len(r.msg) {
		return rec, 0, 0, errMessage
	}
	rec = zone.Record{Owner: r.owner, Type: binary.BigEndian.Uint16(h), TTL: binary.BigEndian.Uint32(h[4:])}
	if rec.TTL > 1<<31-1 { // RFC 2181 §8
		rec.TTL = 0
	}
	return rec, binary.BigEndian.Uint16(h[2:]), end, nil
}

// signature is the TSIG record at the message's end, nil if there is none.
func (r *reader) signature() (*dns.TSIG, error) {
	off := r.off
	for n := r.left + r.rest; n > 0; n-- {
		at := off
		name := wire.NameSpan(r.msg, at)
		if name == 0 || at+name+10 > len(r.msg) {
			return nil, errMessage
		}
		head := r.msg[at+name:]
		if off = at + name + 10 + int(binary.BigEndian.Uint16(head[8:])); off > len(r.msg) {
			return nil, errMessage
		}
		// It must be the last record (RFC 8945 §5.1).
		if n == 1 && binary.BigEndian.Uint16(head) == dns.TypeTSIG {
			rr, _, err := dns.UnpackRR(r.msg, at)
			if err != nil {
				return nil, fmt.Errorf("%w: TSIG record: %w", errMessage, err)
			}
			r.signed = at
			sig, _ := rr.(*dns.TSIG)
			return sig, nil
		}
	}
	return nil, nil
}

// check is an error if a record's data is not of the form that its type has.
func check(rec zone.Record) error {
	ok := true
	switch rec.Type {
	case wire.TypeA:
		ok = len(rec.RData) == 4
	case wire.TypeAAAA:
		ok = len(rec.RData) == 16
	case wire.TypeNS, wire.TypeCNAME, wire.TypePTR:
		ok = wire.NameLen(rec.RData) == len(rec.RData)
	// They are about messages, and stand in no zone.
	case dns.TypeOPT, dns.TypeTSIG, dns.TypeTKEY:
		ok = false
	case dns.TypeAMTRELAY: // which miekg/dns does not read where discovery is optional
	case dns.TypeNXT:
		ok = wire.Misread(rec.Type, rec.RData)
	default:
		// miekg/dns is the judge of all other types, but where their data ends: it reads what is cut as zeros.
		rr, err := rec.RR()
		ok = err == nil && rec.Whole(rr) == nil && (len(rec.RData) > 0 || wire.MayBeEmpty(rec.Type))
	}
	if !ok {
		return fmt.Errorf("%w: data of %s, type %d", errMessage, wire.Text(rec.Owner), rec.Type)
	}
	return nil
}

// appendRData appends the data that stands in msg from off to end, with the names in full that may be compressed, or
// that others may have compressed (RFC 3597 §4).
func appendRData(b, msg []byte, typ uint16, off, end int) ([]byte, bool) {
	lead, names := layout(msg[off:end], typ)
	if names == 0 {
		return append(b, msg[off:end]...), true
	}
	if off+lead > end {
		return b, false
	}
	b = append(b, msg[off:off+lead]...)
	for off += lead; names > 0; names-- {
		n := wire.NameSpan(msg, off)
		var ok bool
		if b, ok = wire.AppendNameAt(b, msg, off); !ok || n == 0 || off+n > end {
			return b, false
		}
		off += n
	}
	return append(b, msg[off:end]...), true
}

// layout tells behind how many octets of its data the names of a type stand, and how many.
func layout(data []byte, typ uint16) (lead, names int) {
	switch typ {
	case wire.TypeNS, dns.TypeMD, dns.TypeMF, wire.TypeCNAME, dns.TypeMB, dns.TypeMG, dns.TypeMR, wire.TypePTR, dns.TypeNXT, wire.TypeDNAME:
		return 0, 1
	case wire.TypeSOA, dns.TypeMINFO, dns.TypeRP:
		return 0, 2
	case wire.TypeMX, dns.TypeAFSDB, dns.TypeRT, dns.TypeKX:
		return 2, 1
	case dns.TypePX:
		return 2, 2
	case wire.TypeSRV:
		return 6, 1
	case dns.TypeSIG, wire.TypeRRSIG:
		return 18, 1
	case dns.TypeNAPTR: // three strings before the name
		lead = 4
		for range 3 {
			if lead < len(data) {
				lead += 1 + int(data[lead])
			}
		}
		return lead, 1
	}
	return 0, 0
}
