package sign

import (
	"slices"
	"sort"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// NSEC is an NSEC record of class IN. bitmap is types in ascending order.
func NSEC(name, next string, ttl uint32, bitmap []uint16) *dns.NSEC {
	return &dns.NSEC{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeNSEC, Class: dns.ClassINET, Ttl: ttl}, NextDomain: next, TypeBitMap: bitmap}
}

// link is a name that the chain of proofs goes through.
type link struct {
	name  string
	types []uint16
}

// chain adds the proofs of what does not exist. Their TTL is the SOA record's minimum (RFC 4034 §4).
func (s *Signer) chain(z *zone.Zone, soa *dns.SOA) (*zone.Zone, error) {
	ttl := soa.Minttl
	e := z.Edit(s.warn)
	records := s.nsecs(z, ttl)
	if s.nsec3 {
		e.AllowNSEC3()
		records = s.nsec3s(z, ttl)
	}
	for _, rr := range records {
		if err := e.AddRR(rr); err != nil {
			return nil, err
		}
	}
	return e.Build()
}

// links is the names that the zone is authoritative for, zone cuts among them, in canonical order, with their types (RFC 4034 §4.1.2): at a
// cut, NS and DS.
func (s *Signer) links(z *zone.Zone) (links []link) {
	for name, n := range z.Nodes() {
		if n.Occluded() {
			continue
		}
		l := link{name: wire.Text(name)}
		for set := range n.Sets() {
			if t := set.Type(); !n.IsCut() || t == dns.TypeNS || t == dns.TypeDS {
				l.types = append(l.types, t)
			}
		}
		if l.name == s.origin && s.zonemd {
			l.types = append(l.types, dns.TypeZONEMD)
		}
		links = append(links, l)
	}
	return links
}

// nsecs is the NSEC records: one for each name with data (RFC 4035 §2.3).
func (s *Signer) nsecs(z *zone.Zone, ttl uint32) (records []dns.RR) {
	links := slices.DeleteFunc(s.links(z), func(l link) bool { return len(l.types) == 0 })
	for i, l := range links {
		types := append(l.types, dns.TypeRRSIG, dns.TypeNSEC)
		slices.Sort(types)
		records = append(records, NSEC(l.name, links[(i+1)%len(links)].name, ttl, types))
	}
	return records
}

// nsec3s is the NSEC3 records, without salt and further iterations (RFC 9276 §3.1): one for each name, also for those without data (RFC 5155 §7.1), and
// the parameters at the apex.
func (s *Signer) nsec3s(z *zone.Zone, ttl uint32) []dns.RR {
	type hashed struct {
		hash string
		link
	}
	var all []hashed
	for _, l := range s.links(z) {
		all = append(all, hashed{dns.HashName(l.name, dns.SHA1, 0, ""), l})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].hash < all[j].hash })
	records := []dns.RR{&dns.NSEC3PARAM{Hdr: dns.RR_Header{Name: s.origin, Rrtype: dns.TypeNSEC3PARAM, Class: dns.ClassINET}, Hash: dns.SHA1}}
	for i, h := range all {
		types := h.types
		if h.name == s.origin {
			types = append(types, dns.TypeNSEC3PARAM)
		}
		if !slices.Equal(types, []uint16{dns.TypeNS}) && len(types) > 0 {
			types = append(types, dns.TypeRRSIG)
		}
		slices.Sort(types)
		owner := strings.ToLower(h.hash) + "."
		if s.origin != "." {
			owner += s.origin
		}
		records = append(records, &dns.NSEC3{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeNSEC3, Class: dns.ClassINET, Ttl: ttl},
			Hash: dns.SHA1, HashLength: 20, NextDomain: all[(i+1)%len(all)].hash, TypeBitMap: types})
	}
	return records
}
