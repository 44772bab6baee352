package tsig

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// fudge is how many seconds the clocks of both sides may differ, as RFC 8945 §10 recommends.
const fudge = 300

// signer writes replies that are to be signed: it adds the TSIG record, which the listener's writer fills in
// with the MAC when it has packed the message.
type signer struct {
	dns.ResponseWriter
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
	signed.SetTsig(s.sig.Hdr.Name, s.sig.Algorithm, fudge, time.Now().Unix())
	err := s.ResponseWriter.WriteMsg(&signed)
	s.TsigTimersOnly(true) // from the second message of a transfer on (RFC 8945 §5.3.1)
	return err
}

// Write writes the message that b holds, signed.
func (s *signer) Write(b []byte) (int, error) {
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		return 0, fmt.Errorf("signing a reply: %w", err)
	}
	return len(b), s.WriteMsg(m)
}

// ConnectionState is the TLS state of the query's connection, nil if there is none.
func (s *signer) ConnectionState() *tls.ConnectionState {
	if c, ok := s.ResponseWriter.(dns.ConnectionStater); ok {
		return c.ConnectionState()
	}
	return nil
}

// complaint is the TSIG record of a reply to a query whose signature sig is bad (RFC 8945 §5.3.2). Only one that is about
// the time will be signed, and tells ours.
func complaint(sig *dns.TSIG, v verdict) *dns.TSIG {
	c := &dns.TSIG{
		Hdr:       dns.RR_Header{Name: sig.Hdr.Name, Rrtype: dns.TypeTSIG, Class: dns.ClassANY},
		Algorithm: sig.Algorithm, Fudge: fudge, OrigId: sig.OrigId, Error: v.errorOf(),
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
