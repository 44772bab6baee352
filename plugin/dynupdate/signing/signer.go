// Package signing keeps a zone signed that changes: it makes of each version the one with the records of DNSSEC.
//
//	version before, changes ──Complete──▶ signer.go: keys, NSEC records ──▶ hashes.go: NSEC3 records
//	                                          └──▶ jobs.go: signatures, where they are not those of before ──▶ version
//	version ──Due──▶ due.go: names at which something ends soon, or is another signer's
//
// It does no I/O and knows no clock. Start at Signer.Complete.
package signing

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"

	"github.com/miekg/dns"
)

// Signer gives each version of a zone the records of DNSSEC that it needs: keys, signatures, and the chain of NSEC
// or NSEC3 records (RFC 4035 §2, RFC 5155 §7.1). Only what a change touches is made anew: the RRsets that are others, the name before a name
// that comes or goes, the SOA record. A signer without keys takes all of that away. It knows no clock and is never
// changed.
type Signer struct {
	origin []byte
	keys   []zonekeys.Pair
	nsec3  bool // denials are NSEC3 records
}

// New is a Signer for a zone, by its name in wire form.
func New(origin []byte, keys []zonekeys.Pair, nsec3 bool) *Signer {
	return &Signer{origin, keys, nsec3}
}

// HasKeys reports whether there are any.
func (g *Signer) HasKeys() bool { return len(g.keys) > 0 }

// How long signatures count, and when they are made anew. Each ends at another moment, so that not all are made anew at
// once.
const (
	backdated   = 3 * time.Hour
	validity    = 30 * 24 * time.Hour
	mostJitter  = 5 * 24 * time.Hour
	renewBefore = 7 * 24 * time.Hour
)

// Manages reports whether records of a type are the signer's.
func Manages(typ uint16) bool {
	switch typ {
	case dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeNSEC3PARAM, dns.TypeDNSKEY, dns.TypeCDS, dns.TypeCDNSKEY:
		return true
	}
	return false
}

// signing is one version on its way.
type signing struct {
	*Signer
	old, plain *zone.Zone // before the change, and with it, but for what is signed
	c          *zone.Change
	now        time.Time
	anew       bool            // the keys are others: no signature of before counts
	names      map[string]bool // that are looked at
	looked     map[string]hash // of these, as the chain of NSEC3 records is to have them, by owner
	due        map[string]bool // owners of NSEC3 records whose signatures are looked at
	jobs       []job
}

// Complete makes the version that plain is to be: the same records, and those of DNSSEC. plain is the next version of
// old by delta, which nobody has been given, and is of no use after it; names are those that are to be looked at.
func (g *Signer) Complete(old, plain *zone.Zone, delta *zone.Delta, names [][]byte, now time.Time) (*zone.Zone, *zone.Delta, error) {
	s := signing{Signer: g, old: old, plain: plain, c: old.Change(), now: now, names: map[string]bool{}, looked: map[string]hash{}, due: map[string]bool{}}
	if err := s.c.Apply(delta); err != nil {
		return nil, nil, err
	}
	s.touch(names)
	// Which name comes first must not depend on a map.
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		if err := s.records([]byte(name)); err != nil {
			return nil, nil, err
		}
	}
	if err := s.hashes(); err != nil {
		return nil, nil, err
	}
	if err := s.sign(); err != nil {
		return nil, nil, err
	}
	return s.c.Zone()
}

// touch gathers the names that are looked at: those given, those that they begin or cease to hide, the one before each,
// and the apex. If the TTL of denials is another, or the keys are, it is all names.
func (s *signing) touch(names [][]byte) {
	apex, _ := s.old.NodeAt(s.origin)
	s.anew = !s.sameKeys(s.old, apex)
	all := denialTTL(s.old) != denialTTL(s.plain) || !s.holds(s.old, apex)
	if all {
		names = allNames(s.old, s.plain)
	}
	s.names[string(s.origin)] = true
	for _, name := range names {
		if s.isOnlyHash(name) {
			s.due[string(name)] = true
			continue
		}
		s.names[string(name)] = true
		s.touchAbove(name)
		if was, is := hides(s.old, name), hides(s.plain, name); was == is {
			continue
		}
		for n := range s.plain.From(name) {
			below := n.Name(s.plain)
			if !wire.Below(below, name) {
				break
			}
			s.names[string(below)] = true
		}
	}
	if s.nsec3 || all {
		return // hashes.go knows the ones before
	}
	for _, name := range slices.Collect(maps.Keys(s.names)) {
		s.names[string(s.before([]byte(name)))] = true
	}
}

// isOnlyHash reports whether a name is that of NSEC3 records, and none of the zone.
func (s *signing) isOnlyHash(name []byte) bool {
	_, was := s.old.NodeAt(name)
	_, is := s.plain.NodeAt(name)
	_, hashed := s.old.NodeAtHash(name)
	return hashed && !was && !is
}

// touchAbove adds empty non-terminals that come or go with a name: they have NSEC3 records.
func (s *signing) touchAbove(name []byte) {
	for s.nsec3 && len(name) > len(s.origin) {
		name = wire.Parent(name)
		_, was := s.old.NodeAt(name)
		if _, is := s.plain.NodeAt(name); was == is {
			return
		}
		s.names[string(name)] = true
	}
}

// allNames is the names of two versions.
func allNames(old, plain *zone.Zone) (names [][]byte) {
	for _, z := range [...]*zone.Zone{old, plain} {
		for name := range z.Nodes() {
			names = append(names, slices.Clone(name))
		}
	}
	return names
}

// hides reports whether a name is a zone cut or a DNAME.
func hides(z *zone.Zone, name []byte) bool {
	n, ok := z.NodeAt(name)
	return ok && (n.IsCut() || n.Set(dns.TypeDNAME) != nil)
}

// isLink reports whether a name stands in the chain of denials: if there is data at it that the zone is authoritative
// for, or a zone cut (RFC 4035 §2.3).
func isLink(n zone.Node) bool {
	if n.Occluded() {
		return false
	}
	for set := range n.Sets() {
		if t := set.Type(); t != dns.TypeNSEC {
			return true
		}
	}
	return false
}

// before is the name in the chain before another, after the next one. Both go round.
func (s *signing) before(name []byte) []byte {
	for n := range s.plain.Back(name) {
		if isLink(n) {
			return n.Name(s.plain)
		}
	}
	for n := range s.plain.Last() {
		if isLink(n) {
			return n.Name(s.plain)
		}
	}
	return s.origin
}

func (s *signing) after(name []byte) []byte {
	for n := range s.plain.From(name) {
		if at := n.Name(s.plain); isLink(n) && string(at) != string(name) {
			return at
		}
	}
	return s.origin
}

// denialTTL is that of denials: the SOA record's minimum, or its TTL if that is less (RFC 9077 §3).
func denialTTL(z *zone.Zone) (ttl uint32) {
	n, _ := z.NodeAt(z.Origin())
	soa := n.Set(dns.TypeSOA).Records()
	rdata := soa.AppendRData(nil, z.Origin())
	return min(soa.TTL(), binary.BigEndian.Uint32(rdata[len(rdata)-4:]))
}

// records makes the records of DNSSEC at a name right, but for signatures, which become jobs.
func (s *signing) records(name []byte) error {
	site := s.c.At(name)
	if site.Apex() {
		if err := s.putKeys(site); err != nil {
			return err
		}
	}
	n, there := s.plain.NodeAt(name)
	if !there || n.Occluded() || len(s.keys) == 0 {
		site.RemoveType(dns.TypeNSEC)
		s.look(name, false, nil)
		return unsign(site, func(uint16) bool { return true })
	}
	types := slices.DeleteFunc(site.Types(), func(t uint16) bool {
		return t == dns.TypeNSEC || n.IsCut() && t != dns.TypeNS && t != dns.TypeDS
	})
	if s.nsec3 {
		s.look(name, true, slices.Clone(types))
	}
	if s.nsec3 || len(types) == 0 {
		site.RemoveType(dns.TypeNSEC)
	} else {
		types = append(types, dns.TypeRRSIG, dns.TypeNSEC)
		slices.Sort(types)
		if err := putNSEC(site, denialTTL(s.plain), s.after(name), types); err != nil {
			return err
		}
	}
	for _, typ := range site.Types() {
		if zonekeys.Signs(typ, n.IsCut()) && !s.isSigned(site, name, typ) {
			s.jobs = append(s.jobs, job{site: site, typ: typ})
		}
	}
	return unsign(site, func(typ uint16) bool { return !zonekeys.Signs(typ, n.IsCut()) })
}

// unsign takes signatures away.
func unsign(site *zone.Site, of func(typ uint16) bool) error {
	for _, typ := range site.Types() {
		if of(typ) && len(site.Signatures(typ)) > 0 {
			if err := site.Sign(typ, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// putKeys makes the records of the keys at the apex those that there should be.
func (s *signing) putKeys(apex *zone.Site) error {
	if len(s.keys) == 0 && apex.Len(dns.TypeDNSKEY) == 0 {
		return nil // CDS and CDNSKEY records, if there are some, are those of clients
	}
	want := map[uint16][][]byte{}
	ttl := apex.TTL(dns.TypeSOA)
	for _, rr := range zonekeys.Records(s.keys, wire.Text(s.origin), ttl) {
		rdata, err := zone.RDataOf(rr)
		if err != nil {
			return err
		}
		typ := rr.Header().Rrtype
		want[typ] = append(want[typ], rdata)
	}
	if s.nsec3 && len(s.keys) > 0 {
		want[dns.TypeNSEC3PARAM] = [][]byte{parameters}
	}
	if err := putSet(apex, dns.TypeNSEC3PARAM, 0, want[dns.TypeNSEC3PARAM]); err != nil {
		return err
	}
	for _, typ := range [...]uint16{dns.TypeDNSKEY, dns.TypeCDS, dns.TypeCDNSKEY} {
		if err := putSet(apex, typ, ttl, want[typ]); err != nil {
			return err
		}
	}
	return nil
}

// putNSEC makes the NSEC record of a name the one that it should be.
func putNSEC(site *zone.Site, ttl uint32, next []byte, types []uint16) error {
	rdata, err := zone.RDataOf(&dns.NSEC{
		Hdr:        dns.RR_Header{Name: wire.Text(site.Name()), Rrtype: dns.TypeNSEC, Class: dns.ClassINET, Ttl: ttl},
		NextDomain: wire.Text(next), TypeBitMap: types,
	})
	if err != nil {
		return err
	}
	return putSet(site, dns.TypeNSEC, ttl, [][]byte{rdata})
}

// putSet makes the records of a type those that there should be. Those that are right keep their signatures.
func putSet(site *zone.Site, typ uint16, ttl uint32, want [][]byte) error {
	same := site.Len(typ) == len(want) && site.TTL(typ) == ttl
	for _, rdata := range want {
		same = same && site.Has(typ, rdata)
	}
	if same || len(want) == 0 && site.Len(typ) == 0 {
		return nil
	}
	site.RemoveType(typ)
	for _, rdata := range want {
		if err := site.Add(typ, ttl, rdata); err != nil {
			return err
		}
	}
	return nil
}

// isSigned reports whether the records of a type are those of before, and have one signature by each key that counts
// for long enough.
func (s *signing) isSigned(site *zone.Site, name []byte, typ uint16) bool {
	sigs := site.Signatures(typ)
	if s.anew || len(sigs) != len(s.keys) {
		return false // putSet has taken those of other records away
	}
	if !Manages(typ) {
		was, _ := s.old.NodeAt(name)
		is, _ := s.plain.NodeAt(name)
		if was == nil || !slices.Equal(was.Set(typ).Records(), is.Set(typ).Records()) {
			return false
		}
	}
	return !slices.ContainsFunc(sigs, func(rdata []byte) bool { return s.stale(rdata, s.now) })
}
