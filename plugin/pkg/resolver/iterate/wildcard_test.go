package iterate

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// What a wildcard made is kept no longer than the denial that proves it, and the TTLs of both go on together: else a
// denial would be told with all of its TTL long after that was over. A name that begins with an
// asterisk itself, with a wildcard above it, needs its proof, too; the wildcard's own name needs none.
func TestWildcardEndsWithItsProof(t *testing.T) {
	for _, name := range []string{"x.w.example.org.", "*.x.w.example.org."} {
		endsWithItsProof(t, name)
	}
	own := rrset.New(rrset.MustName("*.w.example.org."), dns.TypeA, 300, "\xc0\x00\x02\x08")
	if expanded(rrset.Signed(own, "\x00\x01\x0d\x03")) { // by three labels
		t.Error("a wildcard made its own RRset")
	}
}

func endsWithItsProof(t *testing.T, name string) {
	w := small(t)
	example := authority{[]*zoneText{parseZone(t, exampleZone)}}
	answer := func(q *dns.Msg, tcp bool) *dns.Msg {
		m := example.answer(q, tcp)
		if q.Question[0].Name == name {
			m.Rcode, m.Authoritative = 0, true
			m.Answer = []dns.RR{rr(t, name+" 300 IN A 192.0.2.8"), rr(t, name+" 300 IN RRSIG A 13 3 300 20400101000000 20200101000000 1 example.org. AA==")}
			m.Ns = []dns.RR{rr(t, "*.w.example.org. 60 IN NSEC z.example.org. A RRSIG NSEC"), rr(t, "*.w.example.org. 60 IN RRSIG NSEC 13 3 60 20400101000000 20200101000000 1 example.org. AA==")}
		}
		return m
	}
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = answer, answer
	for i, tc := range []struct {
		ttl   uint32
		asked bool
	}{{60, true}, {35, false}, {10, false}, {60, true}} {
		w.asked = nil
		r := w.resolve(name, "A")
		if asked := len(w.asked) > 0; asked != tc.asked || len(r.Answer) != 1 || len(r.Authority) != 1 {
			t.Fatalf("%s, look %d: asked: %v; %s, %d denials", name, i, asked, r.text(), len(r.Authority))
		}
		if a, d := r.Answer[0].TTL, r.Authority[0].TTL; a != tc.ttl || d != tc.ttl {
			t.Errorf("look %d: TTLs %d and %d of the denial, want %d", i, a, d, tc.ttl)
		}
		w.now += 25 * store.Second
	}
}

// Nor is a denial kept for longer than the least of its records.
func TestDenialEndsWithItsProof(t *testing.T) {
	w := small(t)
	example := authority{[]*zoneText{parseZone(t, exampleZone)}}
	answer := func(q *dns.Msg, tcp bool) *dns.Msg {
		m := example.answer(q, tcp)
		if q.Question[0].Qtype == dns.TypeMX {
			m.Ns = append(m.Ns, rr(t, "www.example.org. 60 IN NSEC z.example.org. A RRSIG NSEC"), rr(t, "www.example.org. 60 IN RRSIG NSEC 13 3 60 20400101000000 20200101000000 1 example.org. AA=="))
		}
		return m
	}
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = answer, answer
	for i, left := range []uint32{60, 20, 60} {
		r := w.resolve("www.example.org.", "MX")
		if len(r.Authority) != 2 || r.Authority[0].TTL != left || r.Authority[1].TTL != left {
			t.Errorf("look %d: %d RRsets, %+v; want TTLs of %d", i, len(r.Authority), r.Authority, left)
		}
		w.now += 40 * store.Second
	}
}
