package zonekeys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// An asterisk that is not a label of its own makes no wildcard (RFC 4592 §2.1.1): its signature counts for the one name.
func TestAsterisks(t *testing.T) {
	public := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "example.org.", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET}, Flags: 257, Protocol: 3,
		Algorithm: dns.ED25519}
	private, err := public.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	keys := []Pair{{Public: public, KeyTag: public.KeyTag(), Private: private.(crypto.Signer)}}
	now := time.Now()
	for name, labels := range map[string]uint8{
		"www.example.org.": 3, "*x.example.org.": 3, "**.example.org.": 3, "*.example.org.": 2, "x.*.example.org.": 4, "*.*.example.org.": 3,
	} {
		record := func(owner string) []dns.RR {
			rr, err := dns.NewRR(owner + " 300 IN A 192.0.2.1")
			if err != nil {
				t.Fatal(err)
			}
			return []dns.RR{rr}
		}
		set := record(name)
		sigs, err := Sign(keys, "example.org.", set, 300, Span{now.Add(-time.Hour), now.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		sig := sigs[0].(*dns.RRSIG)
		if sig.Labels != labels || sig.Hdr.Name != name || set[0].Header().Name != name || sig.Verify(public, set) != nil {
			t.Errorf("%v is signed as %v", set[0], sig)
		}
		if name == "*x.example.org." {
			for _, other := range []string{"*.example.org.", "nothing.example.org."} {
				forged := dns.Copy(sig).(*dns.RRSIG)
				if forged.Hdr.Name = other; forged.Verify(public, record(other)) == nil {
					t.Errorf("%v is good for %s, too", sig, other)
				}
			}
		}
	}
}

// The wildcard right below the root is signed under its own name. The library can verify no signature of it.
func TestWildcardBelowRoot(t *testing.T) {
	for _, algorithm := range []uint8{dns.ED25519, dns.ECDSAP256SHA256} {
		public := &dns.DNSKEY{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET}, Flags: 257, Protocol: 3, Algorithm: algorithm}
		private, err := public.Generate(256)
		if err != nil {
			t.Fatal(err)
		}
		key := private.(crypto.Signer)
		var set []dns.RR
		var wanted []byte
		for _, rdata := range []string{"10 a.example.", "10 b.example.", "20 a.example."} { // in canonical order
			rr, err := dns.NewRR("*. 300 IN MX " + rdata)
			if err != nil {
				t.Fatal(err)
			}
			set, wanted = append(set, rr), append(wanted, packed(t, rr)...)
		}
		set[0], set[2] = set[2], set[0]
		sigs, err := Sign([]Pair{{Public: public, KeyTag: public.KeyTag(), Private: key}}, ".", set, 300, Span{time.Now(), time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		sig := sigs[0].(*dns.RRSIG)
		signature, err := base64.StdEncoding.DecodeString(sig.Signature)
		if err != nil {
			t.Fatal(err)
		}
		// What is signed begins with the data of the RRSIG up to the signature (RFC 4034 §3.1.8.1).
		data := packed(t, sig)[len("\x01*\x00")+10:]
		data = append(data[:len(data)-len(signature)], wanted...)
		var good bool
		switch algorithm {
		case dns.ED25519:
			good = ed25519.Verify(key.Public().(ed25519.PublicKey), data, signature)
		case dns.ECDSAP256SHA256:
			hash := sha256.Sum256(data)
			r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
			good = ecdsa.Verify(key.Public().(*ecdsa.PublicKey), hash[:], r, s)
		}
		if !good || sig.Labels != 0 || sig.Hdr.Name != "*." || set[0].Header().Name != "*." {
			t.Errorf("algorithm %d: %v, good: %t", algorithm, sig, good)
		}
	}
}

func packed(t *testing.T, rr dns.RR) []byte {
	t.Helper()
	b := make([]byte, 512)
	n, err := dns.PackRR(rr, b, 0, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}
