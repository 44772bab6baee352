package lab

import (
	"crypto"
	"math/big"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// This file is the ways in which faults are made.

// covers reports whether a record is a signature of a type.
func covers(rr dns.RR, typ uint16) bool {
	g, ok := rr.(*dns.RRSIG)
	return ok && g.TypeCovered == typ
}

// denies reports whether a record is a denial, or the signature of one.
func denies(rr dns.RR) bool {
	h := rr.Header().Rrtype
	return h == dns.TypeNSEC || h == dns.TypeNSEC3 || covers(rr, dns.TypeNSEC) || covers(rr, dns.TypeNSEC3)
}

func isWWW(z *signedZone) func(*dns.RR_Header) bool {
	return func(h *dns.RR_Header) bool { return h.Name == "www."+z.name && h.Rrtype == dns.TypeA }
}

func parentOf(name string) string {
	i, end := dns.NextLabel(name, 0)
	if end {
		return "."
	}
	return name[i:]
}

// newPen makes a key of a zone.
func newPen(zone string) *pen { return penOf(zone, dns.ECDSAP256SHA256, 256) }

// penOf is newPen for a key of an algorithm, with so many bits.
func penOf(zone string, algorithm uint8, bits int) *pen {
	k := &dns.DNSKEY{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 300}, Flags: 257, Protocol: 3, Algorithm: algorithm}
	for {
		private, err := k.Generate(bits)
		if err != nil {
			panic(err)
		}
		if k.KeyTag() != 0 { // package dns signs nothing with it
			return &pen{key: k, private: private.(crypto.Signer)}
		}
	}
}

// resign changes RRsets, and signs them anew.
func (z *signedZone) resign(rrs []dns.RR, which func(*dns.RR_Header) bool, change func(dns.RR), sig func(*dns.RRSIG)) []dns.RR {
	return z.resignBy(z.pen, rrs, which, change, sig)
}

// resignBy is resign by another key. Only what was signed is signed.
func (z *signedZone) resignBy(p *pen, rrs []dns.RR, which func(*dns.RR_Header) bool, change func(dns.RR), sig func(*dns.RRSIG)) []dns.RR {
	type owner struct {
		name string
		typ  uint16
	}
	sets, signed := map[owner][]dns.RR{}, map[owner]bool{}
	rest := rrs[:0:0]
	for _, rr := range rrs {
		h := *rr.Header()
		g, ok := rr.(*dns.RRSIG)
		if ok {
			h.Rrtype = g.TypeCovered
		}
		o := owner{h.Name, h.Rrtype}
		switch {
		case !which(&h):
			rest = append(rest, rr)
		case ok:
			signed[o] = true
		default:
			if change != nil {
				change(rr)
			}
			sets[o] = append(sets[o], rr)
			rest = append(rest, rr)
		}
	}
	for o := range signed {
		if len(sets[o]) > 0 {
			rest = append(rest, p.sign(sets[o], sig))
		}
	}
	return rest
}

// without leaves records of the zone out.
func without(which func(z *signedZone, rr dns.RR) bool) func(*signedZone, []dns.RR) []dns.RR {
	return func(z *signedZone, rrs []dns.RR) []dns.RR {
		return slices.DeleteFunc(rrs, func(rr dns.RR) bool { return which(z, rr) })
	}
}

// altered changes records after they were signed.
func altered(typ uint16, change func(z *signedZone, rr dns.RR)) func(*signedZone, []dns.RR) []dns.RR {
	return func(z *signedZone, rrs []dns.RR) []dns.RR {
		for _, rr := range rrs {
			if rr.Header().Rrtype == typ {
				change(z, rr)
			}
		}
		return rrs
	}
}

// www signs the address of www anew, otherwise.
func www(change func(z *signedZone, g *dns.RRSIG)) func(*signedZone, []dns.RR) []dns.RR {
	return func(z *signedZone, rrs []dns.RR) []dns.RR {
		return z.resign(rrs, isWWW(z), nil, func(g *dns.RRSIG) { change(z, g) })
	}
}

// change changes the signature of www's address after it was made.
func change(change func(z *signedZone, g *dns.RRSIG)) func(*signedZone, []dns.RR) []dns.RR {
	return func(z *signedZone, rrs []dns.RR) []dns.RR {
		for _, rr := range rrs {
			if g, ok := rr.(*dns.RRSIG); ok && g.TypeCovered == dns.TypeA && g.Hdr.Name == "www."+z.name {
				change(z, g)
			}
		}
		return rrs
	}
}

// asWildcard gives www's address a signature that would hold if a wildcard had made it.
func asWildcard(z *signedZone, rrs []dns.RR) []dns.RR {
	star := "*." + z.name
	rrs = z.resign(rrs, isWWW(z), func(rr dns.RR) { rr.Header().Name = star }, nil)
	for _, rr := range rrs {
		if rr.Header().Name == star {
			rr.Header().Name = "www." + z.name
		}
	}
	return rrs
}

// keyed changes the zone's key, and signs all by it.
func keyed(change func(k *dns.DNSKEY)) func(*signedZone, []dns.RR) []dns.RR {
	return func(z *signedZone, rrs []dns.RR) []dns.RR {
		for i, rr := range rrs {
			if k, ok := rr.(*dns.DNSKEY); ok {
				k = dns.Copy(k).(*dns.DNSKEY)
				change(k)
				rrs[i], z.pen.key = k, k
			}
		}
		return z.resign(rrs, func(*dns.RR_Header) bool { return true }, nil, nil)
	}
}

// rsaKeyed gives the zone an RSA key that no tool makes.
func rsaKeyed(bits int, exponent *big.Int) func(*signedZone, []dns.RR) []dns.RR {
	return func(z *signedZone, rrs []dns.RR) []dns.RR {
		odd := newRSA(bits, exponent)
		z.pen.private = odd
		return keyed(func(k *dns.DNSKEY) { k.PublicKey = odd.text() })(z, rrs)
	}
}

// wrong is a DS record with another digest.
func wrong(ds *dns.DS) *dns.DS {
	flip := "0"
	if ds.Digest[0] == '0' {
		flip = "1"
	}
	ds.Digest = flip + ds.Digest[1:]
	return ds
}

// with is a DS record of another kind of digest, and of another algorithm unless that is 0.
func with(ds *dns.DS, kind, algorithm uint8) *dns.DS {
	if ds.DigestType = kind; algorithm != 0 {
		ds.Algorithm = algorithm
	}
	return ds
}

// many puts so many bad signatures before each.
func many(n int) func(*signedZone, dns.Question, *dns.Msg) {
	return func(z *signedZone, _ dns.Question, m *dns.Msg) {
		var all []dns.RR
		for _, rr := range m.Answer {
			if covers(rr, dns.TypeA) {
				for i := range n {
					bad := dns.Copy(rr).(*dns.RRSIG)
					bad.Expiration -= uint32(i + 1)
					all = append(all, bad)
				}
			}
			all = append(all, rr)
		}
		m.Answer = all
	}
}

// allHashed changes all NSEC3 records of replies of the zone itself.
func allHashed(change func(*dns.NSEC3)) func(*signedZone, dns.Question, *dns.Msg) {
	return func(z *signedZone, _ dns.Question, m *dns.Msg) {
		m.Ns = z.resign(m.Ns, func(h *dns.RR_Header) bool { return z.hashed(h) }, func(rr dns.RR) { change(rr.(*dns.NSEC3)) }, nil)
	}
}

// firstHashed is allHashed for the first one.
func firstHashed(change func(*dns.NSEC3)) func(*signedZone, dns.Question, *dns.Msg) {
	return func(z *signedZone, _ dns.Question, m *dns.Msg) {
		for _, rr := range m.Ns {
			if first := *rr.Header(); first.Rrtype == dns.TypeNSEC3 && z.hashed(&first) {
				m.Ns = z.resign(m.Ns, func(h *dns.RR_Header) bool { return h.Rrtype == dns.TypeNSEC3 && h.Name == first.Name }, func(rr dns.RR) { change(rr.(*dns.NSEC3)) }, nil)
				return
			}
		}
	}
}

// hashed reports whether an NSEC3 record is of the zone itself.
func (z *signedZone) hashed(h *dns.RR_Header) bool {
	return h.Rrtype == dns.TypeNSEC3 && parentOf(h.Name) == z.name
}

// parentsDenial puts the zone's denial of sec's DS records in the place of sec's own ones.
func parentsDenial(z *signedZone, q dns.Question, m *dns.Msg) {
	sec := "sec." + z.name
	if !strings.HasSuffix("."+strings.ToLower(q.Name), "."+sec) || len(m.Answer) > 0 || q.Qtype == dns.TypeDS {
		return
	}
	m.Ns = slices.DeleteFunc(m.Ns, denies)
	owner := ""
	for _, rr := range z.rrs {
		switch n := rr.(type) {
		case *dns.NSEC:
			if n.Hdr.Name == sec {
				owner = sec
			}
		case *dns.NSEC3:
			if n.Match(sec) {
				owner = n.Hdr.Name
			}
		}
	}
	for _, rr := range z.rrs {
		if rr.Header().Name == owner && denies(rr) {
			m.Ns = append(m.Ns, dns.Copy(rr))
		}
	}
}
