package lab

import (
	"crypto/rand"
	"encoding/base64"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// zoneFault is what is wrong with a signed zone, or odd, and where: each is made in one place.
type zoneFault struct {
	name      string
	algorithm string                                          // that it takes
	denial    string                                          // that it takes
	args      []string                                        // of dnssec-signzone
	unsigned  bool                                            // the zone is not signed
	zone      func(z *signedZone, rrs []dns.RR) []dns.RR      // changes the signed zone
	ds        func(z *signedZone) []*dns.DS                   // is the zone's DS records
	root      func(m *dns.Msg)                                // changes a reply of the root about the zone
	reply     func(z *signedZone, q dns.Question, m *dns.Msg) // changes a reply
}

var zoneFaults = []zoneFault{
	{}, // none

	// Times of signatures.
	{name: "expired", args: []string{"-s", "20200101000000", "-e", "20200201000000"}},
	{name: "future", args: []string{"-s", "20400101000000", "-e", "20400201000000"}},
	{name: "expires before it begins", zone: www(func(z *signedZone, g *dns.RRSIG) {
		g.Inception, g.Expiration = uint32(time.Now().Add(48*time.Hour).Unix()), uint32(time.Now().Add(-48*time.Hour).Unix())
	})},
	{name: "keys expired", zone: func(z *signedZone, rrs []dns.RR) []dns.RR {
		return z.resign(rrs, func(h *dns.RR_Header) bool { return h.Rrtype == dns.TypeDNSKEY }, nil, func(g *dns.RRSIG) {
			g.Inception, g.Expiration = g.Inception-1e8, g.Inception-9e7
		})
	}},

	// Signatures.
	{name: "www unsigned", zone: without(func(z *signedZone, rr dns.RR) bool { return rr.Header().Name == "www."+z.name && covers(rr, dns.TypeA) })},
	{name: "alias unsigned", zone: without(func(z *signedZone, rr dns.RR) bool { return covers(rr, dns.TypeCNAME) })},
	{name: "SOA unsigned", zone: without(func(z *signedZone, rr dns.RR) bool { return covers(rr, dns.TypeSOA) })},
	{name: "signed by a sibling", zone: func(z *signedZone, rrs []dns.RR) []dns.RR {
		other := newPen(z.sibling)
		return z.resignBy(other, rrs, isWWW(z), nil, nil)
	}},
	{name: "signed by the parent", zone: func(z *signedZone, rrs []dns.RR) []dns.RR { return z.resignBy(z.lab.pen, rrs, isWWW(z), nil, nil) }},
	{name: "signed by a stranger in its name", zone: func(z *signedZone, rrs []dns.RR) []dns.RR {
		return z.resignBy(newPen(z.name), rrs, isWWW(z), nil, nil)
	}},
	{name: "signer is no zone", zone: www(func(z *signedZone, g *dns.RRSIG) { g.SignerName = "www." + z.name })},
	{name: "signer changed", zone: change(func(z *signedZone, g *dns.RRSIG) { g.SignerName = z.sibling })},
	{name: "labels fewer than the zone's", reply: func(z *signedZone, _ dns.Question, m *dns.Msg) { // named loads no such zone
		for _, rr := range m.Answer {
			if g, ok := rr.(*dns.RRSIG); ok && strings.EqualFold(g.Hdr.Name, "www."+z.name) {
				g.Labels = 0
			}
		}
	}},
	{name: "labels of a wildcard", zone: asWildcard},
	{name: "labels changed", zone: change(func(z *signedZone, g *dns.RRSIG) { g.Labels++ })},
	{name: "key tag changed", zone: change(func(z *signedZone, g *dns.RRSIG) { g.KeyTag ^= 1 })},
	{name: "signature cut", zone: change(func(z *signedZone, g *dns.RRSIG) { g.Signature = "AAAA" })},
	{name: "a bad signature first", reply: many(1)},
	{name: "nine bad signatures first", reply: many(9)},

	// Data.
	{name: "www changed", zone: altered(dns.TypeA, func(z *signedZone, rr dns.RR) {
		if a := rr.(*dns.A); a.Hdr.Name == "www."+z.name {
			a.A[len(a.A)-1] = 9
		}
	})},
	{name: "wildcard changed", zone: altered(dns.TypeA, func(z *signedZone, rr dns.RR) {
		if a := rr.(*dns.A); a.Hdr.Name == "*.wild."+z.name {
			a.A[len(a.A)-1] = 9
		}
	})},
	{name: "SOA changed", zone: altered(dns.TypeSOA, func(_ *signedZone, rr dns.RR) { rr.(*dns.SOA).Expire++ })},
	{name: "TTL above the original", reply: func(z *signedZone, _ dns.Question, m *dns.Msg) {
		for _, rr := range slices.Concat(m.Answer, m.Ns) {
			rr.Header().Ttl += 3000
		}
	}},

	// Keys.
	{name: "keys unsigned", zone: without(func(_ *signedZone, rr dns.RR) bool { return covers(rr, dns.TypeDNSKEY) })},
	{name: "a key added", zone: func(z *signedZone, rrs []dns.RR) []dns.RR { return append(rrs, newPen(z.name).key) }},
	{name: "no keys", zone: without(func(_ *signedZone, rr dns.RR) bool {
		return rr.Header().Rrtype == dns.TypeDNSKEY || covers(rr, dns.TypeDNSKEY)
	})},
	{name: "zone bit clear", zone: keyed(func(k *dns.DNSKEY) { k.Flags &^= dns.ZONE })},
	{name: "key revoked", zone: keyed(func(k *dns.DNSKEY) { k.Flags |= dns.REVOKE })},
	{name: "protocol 2", zone: keyed(func(k *dns.DNSKEY) { k.Protocol = 2 })},
	{name: "no SEP bit", zone: keyed(func(k *dns.DNSKEY) { k.Flags &^= dns.SEP })},
	{name: "RSA of 512 bits", algorithm: "8", zone: rsaKeyed(512, big.NewInt(65537))},
	{name: "RSA of 4104 bits", algorithm: "8", zone: rsaKeyed(4104, big.NewInt(65537))},
	{name: "RSA exponent of 33 bits", algorithm: "8", zone: rsaKeyed(1024, big.NewInt(1<<32+15))},
	{name: "RSA exponent of 70 bits", algorithm: "8", zone: rsaKeyed(1024, new(big.Int).SetBit(big.NewInt(33), 69, 1))},
	{name: "RSA modulus with a leading zero", algorithm: "8", zone: keyed(func(k *dns.DNSKEY) {
		k.PublicKey = bytesOf(k.PublicKey, func(b []byte) []byte { return slices.Insert(b, 1+int(b[0]), 0) })
	})},
	{name: "RSA exponent with a leading zero", algorithm: "8", zone: keyed(func(k *dns.DNSKEY) {
		k.PublicKey = bytesOf(k.PublicKey, func(b []byte) []byte { b[0]++; return slices.Insert(b, 1, 0) })
	})},
	{name: "RSA exponent of 1", algorithm: "8", zone: rsaKeyed(1024, big.NewInt(1))},
	{name: "RSA modulus is even", algorithm: "8", zone: keyed(func(k *dns.DNSKEY) {
		k.PublicKey = bytesOf(k.PublicKey, func(b []byte) []byte { b[len(b)-1] &^= 1; return b })
	})},
	{name: "key is no point", algorithm: "13", zone: keyed(func(k *dns.DNSKEY) { k.PublicKey = base64.StdEncoding.EncodeToString(make([]byte, 64)) })},
	{name: "key too short", algorithm: "13", zone: keyed(func(k *dns.DNSKEY) { k.PublicKey = base64.StdEncoding.EncodeToString(make([]byte, 32)) })},

	// Delegations.
	{name: "wrong DS", ds: func(z *signedZone) []*dns.DS { return []*dns.DS{wrong(z.digest(2))} }},
	{name: "one DS of two wrong", ds: func(z *signedZone) []*dns.DS { return []*dns.DS{z.digest(2), wrong(z.digest(2))} }},
	{name: "DS of SHA-1", ds: func(z *signedZone) []*dns.DS { return []*dns.DS{z.digest(1)} }},
	{name: "DS of SHA-384", ds: func(z *signedZone) []*dns.DS { return []*dns.DS{z.digest(4)} }},
	{name: "DS of SHA-1 wrong", ds: func(z *signedZone) []*dns.DS { return []*dns.DS{z.digest(2), wrong(z.digest(1))} }},
	{name: "DS of SHA-256 wrong", ds: func(z *signedZone) []*dns.DS { return []*dns.DS{wrong(z.digest(2)), z.digest(1)} }},
	{name: "DS digest 3", ds: func(z *signedZone) []*dns.DS { return []*dns.DS{with(z.digest(2), 3, 0)} }},
	{name: "DS algorithm 12", ds: func(z *signedZone) []*dns.DS { return []*dns.DS{with(z.digest(2), 2, 12)} }},
	{name: "DS of an unknown algorithm beside", ds: func(z *signedZone) []*dns.DS { return []*dns.DS{with(z.digest(2), 2, 200), z.digest(2)} }},
	{name: "DS of an algorithm without keys beside", ds: func(z *signedZone) []*dns.DS {
		return []*dns.DS{with(z.digest(2), 2, map[bool]uint8{true: 15, false: 13}[z.algorithm == "13"]), z.digest(2)}
	}},
	{name: "not signed", unsigned: true},
	{name: "not signed, no DS", unsigned: true, ds: func(*signedZone) []*dns.DS { return nil }},
	{name: "not signed, no proof", unsigned: true, ds: func(*signedZone) []*dns.DS { return nil }, root: func(m *dns.Msg) { m.Ns = slices.DeleteFunc(m.Ns, denies) }},
	{name: "DS unsigned", root: func(m *dns.Msg) {
		for _, section := range []*[]dns.RR{&m.Answer, &m.Ns} {
			*section = slices.DeleteFunc(*section, func(rr dns.RR) bool { return covers(rr, dns.TypeDS) })
		}
	}},

	// Denials.
	{name: "no denials", reply: func(_ *signedZone, _ dns.Question, m *dns.Msg) { m.Ns = slices.DeleteFunc(m.Ns, denies) }},
	{name: "no wildcard proof", reply: func(_ *signedZone, _ dns.Question, m *dns.Msg) {
		if len(m.Answer) > 0 {
			m.Ns = slices.DeleteFunc(m.Ns, denies)
		}
	}},
	{name: "denials unsigned", reply: func(_ *signedZone, _ dns.Question, m *dns.Msg) {
		m.Ns = slices.DeleteFunc(m.Ns, func(rr dns.RR) bool { return covers(rr, dns.TypeNSEC) || covers(rr, dns.TypeNSEC3) })
	}},
	{name: "no SOA", reply: func(_ *signedZone, _ dns.Question, m *dns.Msg) {
		m.Ns = slices.DeleteFunc(m.Ns, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeSOA || covers(rr, dns.TypeSOA) })
	}},
	{name: "NXDOMAIN as NODATA", reply: func(_ *signedZone, _ dns.Question, m *dns.Msg) { m.Rcode = dns.RcodeSuccess }},
	{name: "NODATA as NXDOMAIN", reply: func(_ *signedZone, _ dns.Question, m *dns.Msg) {
		if len(m.Answer) == 0 && len(m.Ns) > 0 && slices.ContainsFunc(m.Ns, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeSOA }) {
			m.Rcode = dns.RcodeNameError
		}
	}},
	{name: "next name outside", denial: "nsec", zone: func(z *signedZone, rrs []dns.RR) []dns.RR {
		return z.resign(rrs, func(h *dns.RR_Header) bool { return h.Rrtype == dns.TypeNSEC }, func(rr dns.RR) {
			if n := rr.(*dns.NSEC); n.NextDomain == z.name {
				n.NextDomain = "zzz."
			}
		}, nil)
	}},
	{name: "parent's denials for the child", denial: "nsec", reply: parentsDenial},
	{name: "parent's hashed denials for the child", denial: "nsec3", reply: parentsDenial},
	{name: "salt mixed", denial: "nsec3", reply: firstHashed(func(n *dns.NSEC3) { n.Salt, n.SaltLength = "BEEF", 2 })},
	{name: "iterations mixed", denial: "nsec3", reply: firstHashed(func(n *dns.NSEC3) { n.Iterations++ })},
	{name: "unknown flag", denial: "nsec3", reply: firstHashed(func(n *dns.NSEC3) { n.Flags |= 2 })},
	{name: "unknown hash", denial: "nsec3", reply: firstHashed(func(n *dns.NSEC3) { n.Hash = 2 })},
	{name: "opt-out where it is not", denial: "nsec3", reply: allHashed(func(n *dns.NSEC3) { n.Flags |= 1 })},
	{name: "no closest encloser", denial: "nsec3", reply: func(z *signedZone, q dns.Question, m *dns.Msg) {
		m.Ns = slices.DeleteFunc(m.Ns, func(rr dns.RR) bool {
			n, ok := rr.(*dns.NSEC3)
			return ok && !n.Match(q.Name) && (n.Match(z.name) || n.Match(parentOf(q.Name)))
		})
	}},
	{name: "60 iterations", denial: "nsec3", args: []string{"-3", "-", "-H", "60"}},
	{name: "600 iterations", denial: "nsec3", reply: allHashed(func(n *dns.NSEC3) { n.Iterations = 600 })},
	{name: "all types denied", denial: "nsec", zone: func(z *signedZone, rrs []dns.RR) []dns.RR { // but the alias
		return z.resign(rrs, func(h *dns.RR_Header) bool { return h.Rrtype == dns.TypeNSEC && h.Name == "www."+z.name }, func(rr dns.RR) {
			rr.(*dns.NSEC).TypeBitMap = []uint16{dns.TypeCNAME, dns.TypeRRSIG, dns.TypeNSEC}
		}, nil)
	}},

	// Aliases.
	{name: "DNAME unsigned", reply: func(_ *signedZone, _ dns.Question, m *dns.Msg) {
		m.Answer = slices.DeleteFunc(m.Answer, func(rr dns.RR) bool { return covers(rr, dns.TypeDNAME) })
	}},
	{name: "alias of a DNAME forged", reply: func(z *signedZone, _ dns.Question, m *dns.Msg) {
		for _, rr := range m.Answer {
			if c, ok := rr.(*dns.CNAME); ok && strings.HasSuffix(c.Hdr.Name, ".dn."+z.name) {
				c.Target = "www." + z.name
			}
		}
	}},
	{name: "DNAME left out", reply: func(_ *signedZone, _ dns.Question, m *dns.Msg) {
		m.Answer = slices.DeleteFunc(m.Answer, func(rr dns.RR) bool {
			return rr.Header().Rrtype == dns.TypeDNAME && len(m.Answer) > 2 || covers(rr, dns.TypeDNAME) && len(m.Answer) > 2
		})
	}},

	// What stands beside.
	{name: "unsigned NS beside", reply: func(z *signedZone, _ dns.Question, m *dns.Msg) {
		if len(m.Answer) > 0 && m.Question[0].Qtype != dns.TypeNS {
			m.Ns = append(m.Ns, record(z.name+" 300 IN NS ns."+z.name))
		}
	}},
	{name: "unsigned data beside", reply: func(z *signedZone, _ dns.Question, m *dns.Msg) {
		if len(m.Answer) > 0 {
			m.Answer = append(m.Answer, record("beside."+z.name+" 300 IN A 192.0.2.66"))
		}
	}},
}

func prime(bits int) *big.Int {
	p, err := rand.Prime(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return p
}

// bytesOf changes octets that are written in base 64.
func bytesOf(text string, change func([]byte) []byte) string {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(change(b))
}
