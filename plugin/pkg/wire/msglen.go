package wire

import (
	"strings"

	"github.com/miekg/dns"
)

// MsgLen is the length of m in octets, as Reply.PlainLen has it: m.Len counts escapes in texts, and the ends of keys
// and signatures, as they are written and not as they are sent.
func MsgLen(m *dns.Msg) int {
	if m.Compress {
		return m.Len()
	}
	bare := dns.Msg{MsgHdr: m.MsgHdr, Question: m.Question}
	n := bare.Len()
	for _, rrs := range [...][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range rrs {
			n += rrLen(rr)
		}
	}
	return n
}

// rrLen is the length of a record whose names are written in full.
func rrLen(rr dns.RR) int {
	n := dns.Len(rr)
	switch rr := rr.(type) {
	case *dns.A, *dns.AAAA, *dns.NS, *dns.CNAME, *dns.PTR, *dns.MX, *dns.SOA, *dns.SRV, *dns.DNAME, *dns.DS, *dns.OPT, *dns.TSIG:
		return n
	case *dns.NSEC:
		if len(rr.TypeBitMap) > 0 { // Len has two octets for a list of none
			return n
		}
	case *dns.RRSIG:
		return n - strings.Count(rr.Signature, "=")
	case *dns.DNSKEY:
		return n - strings.Count(rr.PublicKey, "=")
	}
	p := packers.Get().(*packer)
	defer packers.Put(p)
	if b, err := p.pack(rr); err == nil {
		return len(b)
	}
	return n
}
