package dynupdate

import (
	"encoding/binary"
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/tsig"

	"github.com/miekg/dns"
)

// message is an UPDATE as far as deciding about it goes.
type message struct {
	by      tsig.Signature
	prereqs []record
	updates []record
}

// record is one of its records. RDATA is uncompressed.
type record struct {
	owner []byte // in wire form, lower
	typ   uint16
	class uint16
	ttl   uint32
	rdata []byte
	err   error // why the record is none
}

func (r record) String() string { return wire.Text(r.owner) + " " + dns.Type(r.typ).String() }

// records is the records of a section.
func records(rrs []dns.RR) []record {
	all := make([]record, len(rrs))
	for i, rr := range rrs {
		all[i] = recordOf(rr)
	}
	return all
}

func recordOf(rr dns.RR) (r record) {
	h := rr.Header()
	r = record{typ: h.Rrtype, class: h.Class, ttl: h.Ttl}
	if r.owner, r.err = wire.LowerName(h.Name); r.err != nil || h.Rdlength == 0 {
		return r
	}
	size := int(h.Rdlength) // which packing changes
	if r.rdata, r.err = rdataOf(rr); r.err == nil {
		r.err = zone.CheckForm(r.typ, r.rdata, size)
	}
	return r
}

// sound reports whether an UPDATE has the records that its header tells of, and nothing behind them, and whether the
// data of its SOA records are whole. Who reads a message as dns.Msg does is not told: the counts become those of the
// records that are there, which may so stand in another section than their sender meant, and what an SOA record lacks
// becomes 0.
func sound(packet []byte) bool {
	if len(packet) < wire.HeaderLen {
		return false
	}
	count := func(i int) int { return int(binary.BigEndian.Uint16(packet[4+2*i:])) }
	off := wire.HeaderLen
	for range count(0) {
		off += wire.NameSpan(packet, off) + 4
	}
	for range count(1) + count(2) + count(3) {
		n := wire.NameSpan(packet, off)
		at := off + n
		if n == 0 || at+10 > len(packet) {
			return false
		}
		off = at + 10 + int(binary.BigEndian.Uint16(packet[at+8:]))
		if off > len(packet) || binary.BigEndian.Uint16(packet[at:]) == dns.TypeSOA && !soundSOA(packet[:off], at+10) {
			return false
		}
	}
	return off == len(packet)
}

// soundSOA reports whether an SOA record's data, from off to the end of b, are two names and five numbers, or none.
func soundSOA(b []byte, off int) bool {
	if off == len(b) {
		return true
	}
	first := wire.NameSpan(b, off)
	second := wire.NameSpan(b, off+first)
	return first > 0 && second > 0 && off+first+second+20 == len(b)
}

// rdataOf is a record's data in wire form, uncompressed.
func rdataOf(rr dns.RR) ([]byte, error) {
	buf := make([]byte, dns.Len(rr)+1)
	n, err := dns.PackRR(rr, buf, 0, nil, false)
	head := wire.NameLen(buf[:n]) + 10
	if err != nil || n < head {
		return nil, fmt.Errorf("record of %s: %w", rr.Header().Name, err)
	}
	return buf[head:n], nil
}

// answer is what an UPDATE is answered with.
type answer struct {
	rcode int
	note  string // for the extended error of a refusal
}

// result is an answer, and what the log says of it.
type result struct {
	answer
	err            error  // of the database
	failed         string // the first record that could not be, or what else is wrong
	added, removed int
	from, to       uint32
	again          bool // it was answered before
}

// malformed is the result of a message that has another form than an UPDATE.
var malformed = result{answer: answer{rcode: dns.RcodeFormatError}, failed: "the message is malformed"}

func refused(format string, args ...any) result {
	note := fmt.Sprintf(format, args...)
	return result{answer: answer{dns.RcodeRefused, note}, failed: note}
}

func faulty(rcode int, r record) result {
	return result{answer: answer{rcode: rcode}, failed: r.String()}
}
