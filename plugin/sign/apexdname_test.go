package sign

import (
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestApexDNAME: a DNAME record at the apex hides all names below it, but not the NSEC3 records, which stand there, too, and are
// signed.
func TestApexDNAME(t *testing.T) {
	s := signer(t)
	s.nsec3 = true
	put(t, s.dbfile, "$ORIGIN example.org.\n$TTL 600\n@ SOA ns hostmaster 1 7200 3600 1209600 300\n@ NS ns.example.net.\n@ DNAME example.com.\nhidden A 192.0.2.1\n")
	hashed := 0
	all := records(t, s, time.Now())
	for key, set := range all {
		if owner, typ, _ := strings.Cut(key, " "); strings.HasSuffix(typ, "RRSIG") {
			if owner == "hidden.example.org." {
				t.Errorf("signed: %v", set)
			}
			continue
		} else if owner == "hidden.example.org." {
			continue
		}
		if set[0].Header().Rrtype == dns.TypeNSEC3 {
			hashed++
		}
		if sigs := all[key+" RRSIG"]; len(sigs) != 1 {
			t.Errorf("%s has %d signatures", key, len(sigs))
		}
	}
	if hashed != 1 {
		t.Errorf("%d NSEC3 records", hashed)
	}
}
