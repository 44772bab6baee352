package dynupdate

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/signing"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// apply makes one update (RFC 2136 §3.4.2).
func (u *decision) apply(rec record) error {
	s := u.c.At(rec.owner)
	switch {
	case rec.class == dns.ClassINET:
		return u.add(s, rec)
	case rec.class == dns.ClassNONE:
		u.remove(s, rec)
	case rec.typ == dns.TypeANY:
		for _, typ := range s.Types() {
			if !u.stays(s, typ) {
				u.removeType(s, typ)
			}
		}
	case s.Apex() && (rec.typ == dns.TypeSOA || rec.typ == dns.TypeNS):
		u.skip("apex")
	case !u.removeType(s, rec.typ):
		u.skip("absent")
	}
	return nil
}

// removeType removes the records of a type, but not those that are made of another zone's addresses. It reports whether
// there were some.
func (u *decision) removeType(s *zone.Site, typ uint16) bool {
	if typ != dns.TypePTR || len(u.d.reverseOf) == 0 {
		return s.RemoveType(typ)
	}
	var all [][]byte
	for rdata := range s.RDatas(typ) {
		all = append(all, slices.Clone(rdata))
	}
	for _, rdata := range all {
		if u.made(typ, rdata) {
			u.skip("reverse")
		} else {
			s.Remove(typ, rdata)
		}
	}
	return len(all) > 0
}

// made reports whether a record is one that the addresses of another zone make, or would make.
func (u *decision) made(typ uint16, rdata []byte) bool {
	return typ == dns.TypePTR && len(u.d.reverseOf) > 0 && u.d.owner(lowered(rdata)) != nil
}

// stays reports whether records of a type stay when all of a name are deleted.
func (u *decision) stays(s *zone.Site, typ uint16) bool {
	return s.Apex() && (typ == dns.TypeSOA || typ == dns.TypeNS) || u.d.signs() && signing.Manages(typ)
}

// skip counts a record that is passed over.
func (u *decision) skip(why string) {
	if u.counts == nil {
		u.counts = map[string]int{}
	}
	u.counts[why]++
}

// besideCNAME is the types that may stand beside a CNAME record (RFC 4034 §2.5, RFC 2535 §2.3.5).
var besideCNAME = []uint16{dns.TypeCNAME, dns.TypeRRSIG, dns.TypeNSEC, dns.TypeSIG, dns.TypeKEY, dns.TypeNXT}

// add adds a record (RFC 2136 §3.4.2.2).
func (u *decision) add(s *zone.Site, rec record) error {
	beside := slices.Contains(besideCNAME, rec.typ)
	switch {
	case u.made(rec.typ, rec.rdata):
		u.skip("reverse")
		return nil
	case rec.typ == dns.TypeCNAME && slices.ContainsFunc(s.Types(), func(t uint16) bool { return !slices.Contains(besideCNAME, t) }),
		!beside && s.Len(dns.TypeCNAME) > 0:
		u.skip("cname")
		return nil
	case rec.typ == dns.TypeSOA:
		if !zone.Newer(serialOf(rec.rdata), u.serial()) {
			u.skip("soa")
			return nil
		}
		u.soa = true
		fallthrough
	case rec.typ == dns.TypeCNAME, rec.typ == dns.TypeDNAME:
		if !s.Has(rec.typ, rec.rdata) { // of such there is one
			s.RemoveType(rec.typ)
		}
	}
	return s.Add(rec.typ, u.ttl(rec), rec.rdata)
}

// ttl is a record's TTL within the directive's bounds, which are not for the SOA record's. One with the first bit set
// counts as 0 (RFC 2181 §8).
func (u *decision) ttl(rec record) uint32 {
	ttl := rec.ttl
	if ttl > 1<<31-1 {
		ttl = 0
	}
	if rec.typ != dns.TypeSOA {
		ttl = min(max(ttl, u.d.ttlMin), u.d.ttlMax)
	}
	if ttl != rec.ttl {
		logger.Debugf("Zone %s: TTL %d of %s becomes %d", u.d.Zone, rec.ttl, rec, ttl)
	}
	return ttl
}

// remove removes one record (RFC 2136 §3.4.2.4).
func (u *decision) remove(s *zone.Site, rec record) {
	switch {
	case u.made(rec.typ, rec.rdata):
		u.skip("reverse")
	case rec.typ == dns.TypeSOA:
		u.skip("soa")
	case rec.typ == dns.TypeNS && s.Apex() && s.Len(dns.TypeNS) == 1 && s.Has(dns.TypeNS, rec.rdata):
		u.skip("apex")
	case !s.Remove(rec.typ, rec.rdata):
		u.skip("absent")
	}
}

// orphans removes DS records where the update, as a whole, has left no zone cut: they belong to one (RFC 4035 §2.4).
func (u *decision) orphans() {
	for _, rec := range u.updates {
		if s := u.c.At(rec.owner); s.Len(dns.TypeNS) == 0 && s.RemoveType(dns.TypeDS) {
			u.skip("cut")
		}
	}
}

// serial is the zone's serial as the update has left it so far.
func (u *decision) serial() (serial uint32) {
	for rdata := range u.c.At(u.d.origin).RDatas(dns.TypeSOA) {
		serial = serialOf(rdata)
	}
	return serial
}

// raise gives a zone the next serial. now is seconds since 1970.
func raise(c *zone.Change, origin []byte, policy serialPolicy, now uint32) error {
	s := c.At(origin)
	var soa []byte
	for rdata := range s.RDatas(dns.TypeSOA) {
		soa = slices.Clone(rdata)
	}
	ttl := s.TTL(dns.TypeSOA)
	at := len(soa) - 20
	binary.BigEndian.PutUint32(soa[at:], nextSerial(policy, binary.BigEndian.Uint32(soa[at:]), now))
	s.RemoveType(dns.TypeSOA)
	return s.Add(dns.TypeSOA, ttl, soa)
}

// serialPolicy is how serials are made.
type serialPolicy uint8

const (
	serialIncrement serialPolicy = iota // one more
	serialUnixTime                      // seconds since 1970, or one more if that is not newer
	serialDate                          // YYYYMMDDnn, likewise
)

// nextSerial is the serial after another, which is newer (RFC 1982) and not 0. now is seconds since 1970.
func nextSerial(p serialPolicy, serial, now uint32) uint32 {
	next := serial + 1
	switch p {
	case serialUnixTime:
		if zone.Newer(now, serial) {
			next = now
		}
	case serialDate:
		y, m, d := time.Unix(int64(now), 0).UTC().Date()
		if today := uint32(((y*100+int(m))*100 + d) * 100); zone.Newer(today, serial) {
			next = today
		}
	}
	if next == 0 {
		next = 1
	}
	return next
}

// serialOf is the serial of an SOA record's data.
func serialOf(rdata []byte) uint32 {
	if len(rdata) < 22 {
		return 0
	}
	return binary.BigEndian.Uint32(rdata[len(rdata)-20:])
}
