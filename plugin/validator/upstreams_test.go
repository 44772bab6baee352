package validator

import (
	"context"
	"crypto"
	"fmt"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"

	"github.com/miekg/dns"
)

// twoUpstreams is a forwarder of which one upstream has nothing to say, or hands on no signatures. Which one is asked is a
// matter of draws, unless the validator has a say.
type twoUpstreams struct {
	*source
	draws int // one bit for each query: who comes first
	strip bool
	blind bool
	asked []string
}

func (s *twoUpstreams) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	order := []string{"bad", "good"}
	if s.draws&1 != 0 {
		order = []string{"good", "bad"}
	}
	s.draws >>= 1
	d := advice.DetourOf(ctx)
	advice.Sort(d, order, func(up string) string { return up })
	if !s.blind || len(s.asked) > 0 { // nobody learns who answers what was parked
		d.Took(order[0])
	}
	s.asked = append(s.asked, fmt.Sprintf("%s: %s%s", order[0], r.Question[0].Name, dns.Type(r.Question[0].Qtype)))
	switch {
	case order[0] == "good":
	case s.strip:
		w = liar{w}
	default:
		return 0, w.WriteMsg(new(dns.Msg).SetReply(r))
	}
	return s.source.ServeDNS(ctx, w, r)
}

var _ plugin.Handler = (*twoUpstreams)(nil)

// One upstream of two that is wrong about all it is asked keeps no name from being validated, whichever of the two is
// asked for what: who was right is asked again, and who was wrong twice is not.
func TestOneOfTwoUpstreams(t *testing.T) {
	const draws = 6
	for n := range 4 << draws {
		v, src := lab(t, "")
		kid := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "kid.example.", Rrtype: dns.TypeDNSKEY, Class: 1, Ttl: 300}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
		p := generate(t, kid)
		src.put(false, kid.ToDS(dns.SHA256))
		a, _ := dns.NewRR("www.kid.example. 300 IN A 192.0.2.1")
		nsec, _ := dns.NewRR("www.kid.example. 300 IN NSEC kid.example. A RRSIG NSEC")
		for _, rr := range []dns.RR{kid, a, nsec} {
			h := rr.Header()
			g := &dns.RRSIG{
				Hdr: dns.RR_Header{Name: h.Name, Rrtype: dns.TypeRRSIG, Class: 1, Ttl: 300}, Algorithm: kid.Algorithm, KeyTag: kid.KeyTag(), SignerName: "kid.example.",
				Inception: uint32(time.Now().Add(-time.Hour).Unix()), Expiration: uint32(time.Now().Add(24 * time.Hour).Unix()),
			}
			if err := g.Sign(p.(crypto.Signer), []dns.RR{rr}); err != nil {
				t.Fatal(err)
			}
			src.replies[h.Name+dns.Type(h.Rrtype).String()] = &dns.Msg{Answer: []dns.RR{rr, g}}
		}
		src.replies["www.kid.example.DS"] = &dns.Msg{Ns: src.replies["www.kid.example.NSEC"].Answer}
		up := &twoUpstreams{source: src, draws: n >> 2, blind: n&1 != 0, strip: n&2 != 0}
		v.Next = up
		m, _, err := ask(t, v, "www.kid.example.", do)
		if err != nil || m == nil || !m.AuthenticatedData {
			t.Errorf("%0*b: %v, %v, asked %q", draws+2, n, m, err, up.asked)
		}
	}
}
