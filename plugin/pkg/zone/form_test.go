package zone

import (
	"testing"

	"github.com/miekg/dns"
)

// TestCheckNames: whole data is right, and what ends before its last name, or behind it, is not.
func TestCheckNames(t *testing.T) {
	for _, text := range []string{
		"NS a.example.", "CNAME a.example.", "PTR a.example.", "DNAME a.example.", "SOA a. b. 1 2 3 4 5", "RP a. b.", "MX 1 a.", "AFSDB 1 a.", "RT 1 a.", "KX 1 a.",
		"PX 1 a. b.", "SRV 1 2 3 a.", "SVCB 1 a. port=53", "HTTPS 0 a.", `NAPTR 1 2 "a" "" "bcd" a.`, "LP 1 a.", "NSAP-PTR a.", "MINFO a. b.",
	} {
		r := wireOf(t, "x.example.org. 60 IN "+text)
		if err := CheckNames(r.Type, r.RData); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if r.Type != dns.TypeSVCB && r.Type != dns.TypeHTTPS {
			if err := CheckNames(r.Type, append(r.RData[:len(r.RData):len(r.RData)], 0)); err == nil {
				t.Errorf("%s is taken with an octet behind it", text)
			}
			for n := range r.RData {
				if err := CheckNames(r.Type, r.RData[:n]); err == nil {
					t.Errorf("%s is taken without its last %d octets", text, len(r.RData)-n)
				}
			}
		}
	}
	if err := CheckNames(dns.TypeA, nil); err != nil {
		t.Error(err)
	}
}
