package tsig

import (
	"fmt"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// signer writes replies that are to be signed: it adds the TSIG record, which the listener's writer fills in
// with the MAC when it has packed the message.
type signer struct {
	plugin.Wrapped
	query   *dns.Msg  // without its signature
	sig     *dns.TSIG // of the query
	written bool
}

// WriteMsg writes m signed. m is not changed.
func (s *signer) WriteMsg(m *dns.Msg) error {
	s.written = true
	signed := *m
	signed.Extra = append([]dns.RR(nil), m.Extra...)
	state := request.Request{Req: s.query, W: s.ResponseWriter}
	state.SizeAndDo(&signed) // the OPT record comes before the signature
	keyring.Sign(&signed, s.sig.Hdr.Name, s.sig.Algorithm)
	err := s.ResponseWriter.WriteMsg(&signed)
	if t := state.QType(); t == dns.TypeAXFR || t == dns.TypeIXFR {
		s.TsigTimersOnly(true) // from the second message of a transfer on (RFC 8945 §5.3.1)
	}
	return err
}

// Write writes the message that b holds, signed.
func (s *signer) Write(b []byte) (int, error) {
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		return 0, fmt.Errorf("signing a reply: %w", err)
	}
	if m.IsTsig() != nil { // by whom the query was passed on to, with the client's own signature
		s.written = true
		return s.ResponseWriter.Write(b)
	}
	return len(b), s.WriteMsg(m)
}

// complaint is the TSIG record of the reply with an id to a query whose signature sig is bad (RFC 8945 §5.3.2). Only
// one that is about the time will be signed, and tells ours. Its original id is the reply's: the query's may have been
// changed on its way.
func complaint(id uint16, sig *dns.TSIG, v verdict) *dns.TSIG {
	c := &dns.TSIG{
		Hdr:       dns.RR_Header{Name: sig.Hdr.Name, Rrtype: dns.TypeTSIG, Class: dns.ClassANY},
		Algorithm: sig.Algorithm, Fudge: keyring.Fudge, OrigId: id, Error: v.errorOf(),
	}
	if v == badTime {
		now := uint64(time.Now().Unix())
		c.TimeSigned = sig.TimeSigned
		c.OtherLen, c.OtherData = 6, hexTime(now)
	}
	return c
}

// hexTime is a time as 48 bits in hexadecimal digits.
func hexTime(t uint64) string {
	const digits = "0123456789ABCDEF"
	var b [12]byte
	for i := range b {
		b[len(b)-1-i] = digits[t&0xF]
		t >>= 4
	}
	return string(b[:])
}
