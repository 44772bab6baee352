package keyring

import (
	"bytes"
	"errors"
	"testing"

	"github.com/miekg/dns"
)

// Signatures are checked over records that miekg/dns misreads, as over all others.
func TestVerify(t *testing.T) {
	const secret = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
	for _, algorithm := range algorithms {
		for _, data := range []string{"0a01c0000201", "0a81c0000201", "0a830572656c6179036e657400"} {
			for _, before := range []string{"", "0102030405060708"} {
				m := new(dns.Msg).SetUpdate("example.org.")
				m.Ns = []dns.RR{&dns.RFC3597{Hdr: dns.RR_Header{Name: "a.example.org.", Rrtype: dns.TypeAMTRELAY, Class: dns.ClassINET, Ttl: 60}, Rdata: data}}
				Sign(m, "key.", algorithm)
				packet, _, err := dns.TsigGenerate(m, secret, before, before != "")
				if err != nil {
					t.Fatal(err)
				}
				check := func(packet []byte, secret string) error {
					return Verify(bytes.Clone(packet), secret, before, before != "")
				}
				if err := check(packet, secret); err != nil {
					t.Errorf("%s, %s: %v", algorithm, data, err)
				}
				if err := check(packet, "AAAA"); !errors.Is(err, dns.ErrSig) {
					t.Errorf("%s, %s: another key: %v", algorithm, data, err)
				}
				at := bytes.Index(packet, []byte{1, 4, 0, 1})
				for _, at := range []int{2, 13, at + 1, at + 7, at + 10} { // flags, zone, type, TTL, data
					other := bytes.Clone(packet)
					if other[at] ^= 2; check(other, secret) == nil {
						t.Errorf("%s, %s: octet %d is another one", algorithm, data, at)
					}
				}
			}
		}
	}
}
