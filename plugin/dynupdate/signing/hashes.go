package signing

import (
	"bytes"
	"maps"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// This file keeps the chain of NSEC3 records (RFC 5155 §7.1): one for each name that is not hidden, empty non-terminals
// and zone cuts too, without salt, further iterations (RFC 9276 §3.1) and opt-out.

// parameters is the data of the NSEC3PARAM record.
var parameters = []byte{dns.SHA1, 0, 0, 0, 0}

// hash is a name that was looked at, as the chain is to have it.
type hash struct {
	there bool
	types []uint16
}

// hashChain is the hashes that a change looks at, over those of the version before.
type hashChain struct {
	old    *zone.Zone
	looked map[string]hash // by owner
	there  []string        // of these, the owners that are in the chain, in order
}

// hashes gives the names that were looked at their NSEC3 records, and the ones before those that come or go. Without
// NSEC3 it takes all of them away.
func (s *signing) hashes() error {
	if !s.nsec3 || len(s.keys) == 0 {
		for n := range s.old.Hashed(nil) {
			s.c.AtHash(n.Name(s.old)).RemoveType(dns.TypeNSEC3)
		}
		return nil
	}
	h := hashChain{old: s.old, looked: s.looked}
	for owner, l := range s.looked {
		if l.there {
			h.there = append(h.there, owner)
		}
	}
	slices.Sort(h.there)
	links := map[string]bool{} // that get another record, perhaps
	for owner, l := range s.looked {
		if l.there {
			links[owner] = true
		}
		if was := h.was(owner); was != l.there {
			links[h.before(owner)] = true
		}
		if !l.there {
			s.c.AtHash([]byte(owner)).RemoveType(dns.TypeNSEC3)
		}
	}
	for owner := range links {
		if err := s.putNSEC3(&h, owner); err != nil {
			return err
		}
	}
	for owner := range maps.Keys(s.due) { // whose signatures are to be looked at
		if l, ok := s.looked[owner]; !links[owner] && (!ok || l.there) {
			s.proveHash([]byte(owner))
		}
	}
	return nil
}

// putNSEC3 makes the record of an owner the one that it should be.
func (s *signing) putNSEC3(h *hashChain, owner string) error {
	types := s.looked[owner].types
	if !s.looked[owner].there { // the one before another
		n, _ := s.old.NodeAtHash([]byte(owner))
		rec := n.Set(dns.TypeNSEC3).Records()
		rr, err := zone.Record{Owner: []byte(owner), Type: dns.TypeNSEC3, RData: rec.AppendRData(nil, s.origin)}.RR()
		if err != nil {
			return err
		}
		types = rr.(*dns.NSEC3).TypeBitMap
	}
	ttl := denialTTL(s.plain)
	next := wire.FirstLabel([]byte(h.after(owner)))
	rdata, err := zone.RDataOf(&dns.NSEC3{
		Hdr:  dns.RR_Header{Name: wire.Text([]byte(owner)), Rrtype: dns.TypeNSEC3, Class: dns.ClassINET, Ttl: ttl},
		Hash: dns.SHA1, HashLength: 20, NextDomain: string(next), TypeBitMap: types,
	})
	if err != nil {
		return err
	}
	if err := putSet(s.c.AtHash([]byte(owner)), dns.TypeNSEC3, ttl, [][]byte{rdata}); err != nil {
		return err
	}
	s.proveHash([]byte(owner))
	return nil
}

// proveHash has the record of an owner signed, unless it is.
func (s *signing) proveHash(owner []byte) {
	if site := s.c.AtHash(owner); !s.isSigned(site, owner, dns.TypeNSEC3) {
		s.jobs = append(s.jobs, job{site: site, typ: dns.TypeNSEC3})
	}
}

// look notes what the NSEC3 record of a name is to say: at a cut without DS records nothing is signed (RFC 5155 §7.1).
func (s *signing) look(name []byte, there bool, types []uint16) {
	if len(types) > 0 && !slices.Equal(types, []uint16{dns.TypeNS}) {
		types = append(types, dns.TypeRRSIG)
	}
	slices.Sort(types)
	s.looked[string(zone.HashedOwner(name, s.origin))] = hash{there, types}
}

// was reports whether an owner was in the chain of the version before.
func (h *hashChain) was(owner string) bool {
	_, ok := h.old.NodeAtHash([]byte(owner))
	return ok
}

// stays reports whether a node of the version before is still in the chain.
func (h *hashChain) stays(n zone.Node) (owner string, ok bool) {
	owner = string(n.Name(h.old))
	l, looked := h.looked[owner]
	return owner, !looked || l.there
}

// after is the owner behind another; before the one before it. Both go round.
func (h *hashChain) after(owner string) (next string) {
	at, _ := slices.BinarySearch(h.there, owner+"\x00")
	next = h.first([]byte(owner), owner, h.there[at:])
	if next == "" {
		next = h.first(nil, "", h.there)
	}
	return next
}

func (h *hashChain) first(from []byte, not string, there []string) (first string) {
	if len(there) > 0 {
		first = there[0]
	}
	for n := range h.old.Hashed(from) {
		if owner, ok := h.stays(n); ok && owner != not {
			if first == "" || owner < first {
				first = owner
			}
			break
		}
	}
	return first
}

func (h *hashChain) before(owner string) (last string) {
	at, _ := slices.BinarySearch(h.there, owner)
	last = h.last([]byte(owner), h.there[:at])
	if last == "" {
		last = h.last(nil, h.there)
	}
	return last
}

func (h *hashChain) last(from []byte, there []string) (last string) {
	if len(there) > 0 {
		last = there[len(there)-1]
	}
	for n := range h.old.HashedBack(from) {
		if owner, ok := h.stays(n); ok {
			last = max(last, owner)
			break
		}
	}
	return last
}

// hasChain reports whether denials of a version are of the signer's kind.
func (g *Signer) hasChain(apex zone.Node) bool {
	param := apex.Set(dns.TypeNSEC3PARAM).Records()
	if !g.nsec3 {
		return len(param) == 0
	}
	return len(param) > 0 && bytes.Equal(param.Data(), parameters)
}
