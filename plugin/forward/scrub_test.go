package forward

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestScrubbed(t *testing.T) {
	rr := func(text string) []dns.RR {
		var all []dns.RR
		for line := range strings.Lines(text) {
			r, err := dns.NewRR(line)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		return all
	}
	for name, c := range map[string]struct {
		answer, authority string
		keep              int // records of the answer
		rcode             int
	}{
		"one":          {"a.org. 1 IN A 192.0.2.1", "", 1, 0},
		"a stray":      {"a.org. 1 IN A 192.0.2.1\nb.org. 1 IN A 192.0.2.2", "", 1, 0},
		"an alias":     {"a.org. 1 IN CNAME B.net.\nb.net. 1 IN A 192.0.2.2\nc.net. 1 IN A 192.0.2.3", "", 2, 0},
		"no order":     {"b.net. 1 IN A 192.0.2.2\na.org. 1 IN CNAME b.net.", "", 2, 0},
		"a circle":     {"a.org. 1 IN CNAME b.net.\nb.net. 1 IN CNAME a.org.", "", 2, 0},
		"DNAME":        {"org. 1 IN DNAME net.\na.org. 1 IN CNAME a.net.\na.net. 1 IN A 192.0.2.2", "", 3, 0},
		"no data":      {"", "org. 1 IN SOA a. b. 1 2 3 4 5\norg. 1 IN NS a.", 0, 0},
		"a referral":   {"", "org. 1 IN NS a.", 0, dns.RcodeServerFailure},
		"nothing":      {"", "", 0, 0},
		"a lone stray": {"b.org. 1 IN A 192.0.2.2", "", 0, 0},
	} {
		m := new(dns.Msg).SetReply(new(dns.Msg).SetQuestion("A.org.", dns.TypeA))
		m.Answer, m.Ns = rr(c.answer), rr(c.authority)
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var got dns.Msg
		if err := got.Unpack(scrubbed(b)); err != nil || len(got.Answer) != c.keep || got.Rcode != c.rcode {
			t.Errorf("%s: %v\n%v", name, err, &got)
		}
	}
}
