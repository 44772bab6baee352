package doh

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/response"

	"github.com/miekg/dns"
)

// TestMaxAge compares with what the packages for messages tell, for many kinds of replies.
func TestMaxAge(t *testing.T) {
	now := time.Now().UTC()
	sig := func(from, to time.Duration) string {
		return fmt.Sprintf("example.org. 300 IN RRSIG A 8 2 300 %s %s 1 example.org. AAAA", dns.TimeToString(uint32(now.Add(to).Unix())), dns.TimeToString(uint32(now.Add(from).Unix())))
	}
	records := []string{
		"www.example.org. 0 IN A 192.0.2.1", "www.example.org. 60 IN A 192.0.2.1", "www.example.org. 86400 IN TXT x", "example.org. 300 IN SOA ns h 1 2 3 4 5",
		"example.org. 120 IN NS ns.example.org.", "ns.example.org. 30 IN A 192.0.2.1", sig(-time.Hour, time.Hour), sig(-2*time.Hour, -time.Hour), sig(time.Hour, 2*time.Hour),
	}
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[int]int{}
	for range 20000 {
		m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		m.Response, m.Compress = true, random.IntN(2) == 0
		switch random.IntN(20) {
		case 0:
			m.Opcode = dns.OpcodeNotify
		case 1:
			m.Question[0].Qtype = dns.TypeAXFR
		case 2:
			m.Question[0].Qtype = dns.TypeIXFR
		}
		m.Rcode = []int{0, 0, 0, 3, 3, 2, 5, 1, 4}[random.IntN(9)]
		for _, section := range []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra} {
			for range random.IntN(3) {
				rr, err := dns.NewRR(records[random.IntN(len(records))])
				if err != nil {
					t.Fatal(err)
				}
				*section = append(*section, rr)
			}
		}
		if random.IntN(2) == 0 {
			m.SetEdns0(1232, random.IntN(2) == 0)
			if random.IntN(10) == 0 {
				m.Rcode = dns.RcodeBadVers
			}
		}
		kind, _ := response.Typify(m, now)
		want := int(dnsutil.MinimalTTL(m, kind).Seconds())
		got := maxAge(coretest.Packed(t, m), now)
		if got != want {
			t.Fatalf("got %d, want %d for\n%v", got, want, m)
		}
		seen[want]++
	}
	if len(seen) < 6 {
		t.Errorf("only these were seen: %v", seen)
	}
}

func FuzzMaxAge(f *testing.F) {
	f.Add(coretest.Packed(f, coretest.Query("example.org.")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := maxAge(b, time.Now()); n < 0 || n > mostAge {
			t.Fatalf("%x: %d", b, n)
		}
	})
}

func BenchmarkMaxAge(b *testing.B) {
	m := coretest.Query("www.example.org.")
	rr, _ := dns.NewRR("www.example.org. 300 IN A 192.0.2.1")
	m.Answer = []dns.RR{rr, rr, rr}
	p, now := coretest.Packed(b, m), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		maxAge(p, now)
	}
}
