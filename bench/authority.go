package main

import (
	"bytes"
	"crypto"
	"fmt"
	"time"

	"github.com/miekg/dns"
)

// appendAuthoritative is appendAnswer of a server that is an authority: AA is set, RA is not.
func appendAuthoritative(b, query []byte) []byte {
	start := len(b)
	if b = appendAnswer(b, query); len(b) > start {
		b[start+2] |= 0x04
		b[start+3] &^= 0x80
	}
	return b
}

// signedZone answers as the authority of a zone in which every name has one address, with signatures
// that it makes for each answer (RFC 4034, algorithm 13). A resolver below the zone's cut asks for
// nothing else than addresses and the key.
type signedZone struct {
	key    *dns.DNSKEY
	signer crypto.Signer
	kept   map[string][]byte // answers that were made before, from behind the question on, by the question in lower case
}

func newSignedZone(origin string) (*signedZone, error) {
	z := &signedZone{key: &dns.DNSKEY{
		Hdr:   dns.RR_Header{Name: dns.Fqdn(origin), Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600},
		Flags: dns.ZONE | dns.SEP, Protocol: 3, Algorithm: dns.ECDSAP256SHA256,
	}}
	private, err := z.key.Generate(256)
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", origin, err)
	}
	z.signer = private.(crypto.Signer)
	return z, nil
}

// ds is the DS record of the zone in one line.
func (z *signedZone) ds() string {
	ds := z.key.ToDS(dns.SHA256)
	return fmt.Sprintf("%s DS %d %d %d %s", ds.Hdr.Name, ds.KeyTag, ds.Algorithm, ds.DigestType, ds.Digest)
}

// prepare makes the answers to the first n queries of a source: signing takes longer than all else that the load does.
func (z *signedZone) prepare(src source, n int) {
	if z.kept == nil {
		z.kept = map[string][]byte{}
	}
	for range n {
		query, _ := src.next()
		end := questionEnd(query)
		z.kept[string(bytes.ToLower(query[headerLen:end]))] = z.sign(nil, query)[end:]
	}
}

// appendAnswer appends the signed answer.
func (z *signedZone) appendAnswer(b, query []byte) []byte {
	end := questionEnd(query)
	rest := z.kept[string(bytes.ToLower(query[min(headerLen, end):end]))]
	if rest == nil {
		return z.sign(b, query)
	}
	start := len(b)
	b = append(b, query[:end]...)
	copy(b[start+2:], []byte{0x84, 0, 0, 1, 0, 2, 0, 0, 0, 1}) // QR, AA; one question, two answers, one OPT record
	return append(b, rest...)
}

// sign appends an answer with a signature that is made now. It leaves out what a resolver asks for nothing of.
func (z *signedZone) sign(b, query []byte) []byte {
	q := new(dns.Msg)
	if q.Unpack(query) != nil || q.Response || len(q.Question) != 1 {
		return b
	}
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	m.Compress = true
	m.SetEdns0(1232, true)
	var rr dns.RR
	switch name := q.Question[0].Name; q.Question[0].Qtype {
	case dns.TypeDNSKEY:
		rr = z.key
	case dns.TypeA:
		rr = &dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 3600}, A: []byte{192, 0, 2, 9}}
	default:
		return b
	}
	now := time.Now()
	sig := &dns.RRSIG{
		Algorithm: z.key.Algorithm, KeyTag: z.key.KeyTag(), SignerName: z.key.Hdr.Name,
		Inception: uint32(now.Add(-time.Hour).Unix()), Expiration: uint32(now.Add(24 * time.Hour).Unix()),
	}
	if sig.Sign(z.signer, []dns.RR{rr}) != nil {
		return b
	}
	m.Answer = []dns.RR{rr, sig}
	msg, err := m.Pack()
	if err != nil {
		return b
	}
	return append(b, msg...)
}
