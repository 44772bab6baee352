package doh

import (
	"encoding/binary"
	"time"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Freshness of a reply over HTTP, in seconds.
const (
	noAge   = int(dnsutil.MinimalDefaultTTL / time.Second) // of what has no TTL that counts
	mostAge = int(dnsutil.MaximumDefaultTTL / time.Second)
)

// maxAge is for how many seconds HTTP may keep a packed reply (RFC 8484 §5.1): the least TTL of its records, at
// most an hour. Replies other than a positive answer, NXDOMAIN and NODATA, those without records, and those with
// signatures that are not valid now have none that counts. It is what response.Typify and dnsutil.MinimalTTL tell
// of the message.
func maxAge(b []byte, now time.Time) int {
	if len(b) < wire.HeaderLen || binary.BigEndian.Uint16(b[4:]) != 1 || b[2]>>3&0xF != dns.OpcodeQuery {
		return noAge
	}
	off := reply.SkipName(b, wire.HeaderLen)
	if off+4 > len(b) {
		return noAge
	}
	// Parts of a zone are not to be kept by HTTP, whatever their TTLs.
	if t := binary.BigEndian.Uint16(b[off:]); t == wire.TypeAXFR || t == wire.TypeIXFR {
		return noAge
	}
	r := ages{packet: b, least: uint32(mostAge), rcode: int(b[3] & 0xF)}
	if !r.read(off+4, now) || !r.counts() {
		return noAge
	}
	return int(r.least)
}

// ages is what the records of a reply say.
type ages struct {
	packet           []byte
	rcode            int
	least            uint32
	records, answers int
	soa, ns          bool // in the authority section
	do, stale        bool // stale: some signature is not valid now
}

// read reads all records from off on. It reports false if they are cut.
func (r *ages) read(off int, now time.Time) bool {
	b := r.packet
	for section := range 3 {
		for range binary.BigEndian.Uint16(b[6+2*section:]) {
			if off = reply.SkipName(b, off); off+10 > len(b) {
				return false
			}
			end := off + 10 + int(binary.BigEndian.Uint16(b[off+8:]))
			if end > len(b) {
				return false
			}
			r.record(section, b[off:end], now)
			off = end
		}
	}
	return true
}

// record reads one record, from its type on.
func (r *ages) record(section int, b []byte, now time.Time) {
	kind := binary.BigEndian.Uint16(b)
	if kind == wire.TypeOPT {
		// The TTL field of an OPT record: upper bits of the rcode, version, DO (RFC 6891 §6.1.3).
		r.rcode |= int(b[4]) << 4
		r.do = b[6]&0x80 != 0
		return
	}
	r.records++
	r.least = min(r.least, binary.BigEndian.Uint32(b[4:]))
	switch {
	case section == 0:
		r.answers++
	case section == 1 && kind == wire.TypeSOA:
		r.soa = true
	case section == 1 && kind == wire.TypeNS:
		r.ns = true
	}
	if rdata := b[10:]; kind == wire.TypeRRSIG && len(rdata) >= 18 {
		sig := dns.RRSIG{Expiration: binary.BigEndian.Uint32(rdata[8:]), Inception: binary.BigEndian.Uint32(rdata[12:])}
		r.stale = r.stale || !sig.ValidityPeriod(now)
	}
}

// counts reports whether the TTLs count.
func (r *ages) counts() bool {
	if r.records == 0 || r.do && r.stale {
		return false
	}
	switch r.rcode {
	case dns.RcodeSuccess:
		// Without an answer: NODATA has a SOA record, a referral has NS records only.
		return r.answers > 0 || r.soa || !r.ns
	case dns.RcodeNameError:
		return r.answers == 0
	}
	return false
}
