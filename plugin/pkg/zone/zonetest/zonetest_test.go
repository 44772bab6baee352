package zonetest

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// TestNew reads zones, and looks for all that they shall be full of.
func TestNew(t *testing.T) {
	found := map[string]bool{}
	for seed := range uint64(60) {
		z := New("example.org.", seed)
		if again := New("example.org.", seed); again.Text != z.Text {
			t.Fatalf("seed %d gives two zones", seed)
		}
		zp := dns.NewZoneParser(strings.NewReader(z.Text), z.Origin, "")
		for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
			found[dns.TypeToString[rr.Header().Rrtype]] = true
			name := rr.Header().Name
			found["apex wildcard"] = found["apex wildcard"] || name == "*.example.org."
			found["asterisk within"] = found["asterisk within"] || strings.Contains(name[1:], ".*.")
		}
		if err := zp.Err(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, q := range z.Questions(seed, 100) {
			if _, ok := dns.IsDomainName(q.Name); !ok || !dns.IsSubDomain(z.Origin, q.Name) || dns.StringToType[q.Type] == 0 {
				t.Errorf("seed %d: question %v", seed, q)
			}
		}
	}
	for _, what := range []string{"A", "AAAA", "CNAME", "DNAME", "NS", "DS", "MX", "SRV", "HTTPS", "TXT", "apex wildcard", "asterisk within"} {
		if !found[what] {
			t.Errorf("no %s in any zone", what)
		}
	}
}
