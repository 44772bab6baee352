// Package rrset reads replies into RRsets, as a resolver keeps them: names in lower
// case and in full, RDATA without compression, signatures beside what they sign.
//
//	packet ──Parse──▶ Message ──▶ Section: Sets in the order of the packet
//
// A Set never changes and may be shared. Names are strings of wire form in lower case,
// so that they are keys of maps and are compared by ==. The package knows nothing of
// servers, stores and time. Start at Parse and Set.
package rrset

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Types that resolving has to know, beside those of package wire.
const (
	TypeDS         uint16 = 43
	TypeNSEC       uint16 = 47
	TypeDNSKEY     uint16 = 48
	TypeNSEC3      uint16 = 50
	TypeNSEC3PARAM uint16 = 51
	TypeANY        uint16 = 255
)

// Set is an RRset (RFC 2181 §5) with the signatures that came with it.
type Set struct {
	Name string // owner: wire form, lower case
	Type uint16
	TTL  uint32 // seconds; the least of its records (RFC 2181 §5.2)
	N    uint16 // records
	Sigs uint16 // RRSIG records that cover it

	// RDATA, each with its length in two octets before it: first that of the records,
	// split octets long, then that of the signatures.
	all   string
	split uint32
}

// New is the Set with the RDATA given, uncompressed.
func New(name string, typ uint16, ttl uint32, rdata ...string) *Set {
	s := &Set{Name: name, Type: typ, TTL: ttl, N: uint16(len(rdata))}
	var b strings.Builder
	for _, r := range rdata {
		b.Write([]byte{byte(len(r) >> 8), byte(len(r))})
		b.WriteString(r)
	}
	s.set(b.String(), "")
	return s
}

func (s *Set) data() string { return s.all[:s.split] }
func (s *Set) sigs() string { return s.all[s.split:] }

// set makes s one with other RDATA.
func (s *Set) set(data, sigs string) { s.all, s.split = data+sigs, uint32(len(data)) }

// Each calls f with the RDATA of each record, until it reports false.
func (s *Set) Each(f func(rdata string) bool) { each(s.data(), f) }

// EachSig is Each for the RRSIG records.
func (s *Set) EachSig(f func(rdata string) bool) { each(s.sigs(), f) }

func each(data string, f func(string) bool) {
	for len(data) >= 2 {
		n := 2 + int(data[0])<<8 + int(data[1])
		if !f(data[2:n]) {
			return
		}
		data = data[n:]
	}
}

// AppendAll appends the RDATA of the records, and then that of the signatures, each with its length in two octets
// before it.
func (s *Set) AppendAll(b []byte) []byte { return append(b, s.all...) }

// First is the RDATA of the first record, empty if there is none.
func (s *Set) First() (rdata string) {
	s.Each(func(r string) bool { rdata = r; return false })
	return rdata
}

// Two Sets are the same for a zone cut, say, if its servers did not change; TTL and
// signatures of an unchanged RRset do.

// Same reports whether both have the same records, in whatever order; signatures and
// TTLs may differ.
func (s *Set) Same(o *Set) bool {
	if s.N != o.N || s.Type != o.Type || s.Name != o.Name {
		return false
	}
	if s.data() == o.data() {
		return true
	}
	same := s.split == o.split
	s.Each(func(r string) bool {
		same = same && o.Has(r)
		return same
	})
	return same
}

// Has reports whether one of the records has that RDATA.
func (s *Set) Has(rdata string) (has bool) {
	s.Each(func(r string) bool { has = has || r == rdata; return !has })
	return has
}

// Target is the name, in lower case, that the RDATA of an NS, CNAME, DNAME or PTR
// record is.
func Target(rdata string) string { return Lower(rdata) }

// Lower is s with the letters A-Z in lower case.
func Lower(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			b := make([]byte, len(s))
			wire.Lower(b, []byte(s))
			return string(b)
		}
	}
	return s
}

// Address is the address that the RDATA of an A or AAAA record is; not valid if it is
// of another length.
func Address(rdata string) netip.Addr {
	a, _ := netip.AddrFromSlice([]byte(rdata))
	return a
}

// Size is the octets of memory that s takes.
func (s *Set) Size() int { return 80 + len(s.Name) + len(s.all) }

// WithTTL is s with a TTL, s itself if it has that.
func (s *Set) WithTTL(ttl uint32) *Set {
	if s.TTL == ttl {
		return s
	}
	c := *s
	c.TTL = ttl
	return &c
}

// Renamed is s under another owner, without signatures: what a DNAME or a wildcard has
// made is signed elsewhere.
func (s *Set) Renamed(name string) *Set {
	c := *s
	c.Name, c.Sigs = name, 0
	c.set(s.data(), "")
	return &c
}

// Under is s under another owner and with a TTL, with its signatures: what a wildcard stands for has those of the
// wildcard (RFC 4035 §5.3.2).
func (s *Set) Under(name string, ttl uint32) *Set {
	c := *s
	c.Name, c.TTL = name, ttl
	return &c
}

// A Set is never empty: who takes all records out has nil, and has to say NODATA.

// Edited is s with the RDATA that edit makes of that of each record, without those that it makes empty; nil if none is
// left, s itself if nothing is another.
func (s *Set) Edited(edit func(rdata string) string) *Set {
	var b strings.Builder
	n, same := uint16(0), true
	s.Each(func(r string) bool {
		e := edit(r)
		if same = same && e == r; e != "" {
			n++
			b.Write([]byte{byte(len(e) >> 8), byte(len(e))})
			b.WriteString(e)
		}
		return true
	})
	switch {
	case same:
		return s
	case n == 0:
		return nil
	}
	c := *s
	c.N = n
	c.set(b.String(), s.sigs())
	return &c
}

// SOAMinimum is the MINIMUM field of the RDATA of an SOA record, 0 if it is cut short.
func SOAMinimum(rdata string) uint32 {
	if len(rdata) < 22 {
		return 0
	}
	return binary.BigEndian.Uint32([]byte(rdata[len(rdata)-4:]))
}

// Signed is s with signatures: the RDATA of RRSIG records.
func Signed(s *Set, rdata ...string) *Set {
	c := *s
	c.Sigs = uint16(len(rdata))
	c.set(s.data(), New("", 0, 0, rdata...).data())
	return &c
}
