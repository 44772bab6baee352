package zonekeys

import (
	"crypto"
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
