package zone

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// A resolver may mix the cases of a question to know its replies. They get no longer by more than one name: the first
// that is written in the zone's own case, to which others point.
func TestMixedCaseIsCompressed(t *testing.T) {
	z := build(t, "example.org.", apex+"www A 192.0.2.7\nalias CNAME www\nsub NS ns.sub\nns.sub A 192.0.2.8\nmail MX 1 ns1\n")
	length := func(name string, typ uint16) int {
		m := new(dns.Msg).SetQuestion(name, typ)
		p, err := m.Pack()
		var q wire.Query
		if err != nil || !q.Parse(p) {
			t.Fatalf("%s: %v", name, err)
		}
		var w wire.Reply
		w.Reset(make([]byte, 0, 4096))
		var a Answerer
		a.Answer(z, &w, &q)
		reply := w.Finish(&q, 4096)
		if err := m.Unpack(reply); err != nil || len(m.Answer)+len(m.Ns) == 0 {
			t.Fatalf("%s: %v\n%v", name, err, m)
		}
		return len(reply)
	}
	const origin = len("\x07example\x03org\x00")
	for _, tc := range []struct {
		plain, mixed string
		typ          uint16
	}{
		{"none.example.org.", "none.eXample.org.", dns.TypeA}, // the owner of the SOA record, and two names in it
		{"www.example.org.", "wWw.example.oRg.", dns.TypeAAAA},
		{"example.org.", "Example.org.", dns.TypeTXT},
		{"x.sub.example.org.", "x.sub.EXAMPLE.org.", dns.TypeA},
	} {
		if plain, mixed := length(tc.plain, tc.typ), length(tc.mixed, tc.typ); mixed > plain+origin {
			t.Errorf("%s: %d octets, %d with %s", tc.mixed, mixed, plain, tc.plain)
		}
	}
}

// Addresses of a name that is not the question's, octet by octet, are all in a reply that has room for them with
// pointers to one owner: over TCP there is no other way to get them.
func TestManyAddressesFit(t *testing.T) {
	const many = "addresses-of-a-service.in-some-namespace.of-this-cluster.example.org."
	text := apex + "alias CNAME " + many + "\n"
	for i := range 1200 {
		text += fmt.Sprintf("%s A 192.0.%d.%d\n", many, i>>8, i&0xFF)
	}
	z := build(t, "example.org.", text)
	for _, name := range []string{many, "A" + many[1:], strings.Replace(many, "org", "oRg", 1), "alias.example.org.", "aLias.example.Org."} {
		m := new(dns.Msg).SetQuestion(name, dns.TypeA)
		p, err := m.Pack()
		var q wire.Query
		if err != nil || !q.Parse(p) {
			t.Fatalf("%s: %v", name, err)
		}
		q.Peer.Limit = wire.MaxMessage
		var w wire.Reply
		w.Reset(nil)
		var a Answerer
		a.Answer(z, &w, &q)
		if err := m.Unpack(w.Finish(&q, wire.MaxMessage)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		seen := map[string]bool{}
		for _, rr := range m.Answer {
			if a, ok := rr.(*dns.A); ok && dns.CanonicalName(a.Hdr.Name) == many {
				seen[a.A.String()] = true
			}
		}
		if len(seen) != 1200 || m.Truncated || len(m.Ns) != 2 {
			t.Errorf("%s: %d addresses, %d records of authority, TC %v", name, len(seen), len(m.Ns), m.Truncated)
		}
	}
}

// Where owners are to follow the question, as below a cache, they point to it whatever its case is.
func TestOwnersFollowTheQuestion(t *testing.T) {
	z := build(t, "example.org.", apex+"www A 192.0.2.7\nalias CNAME www\n*.star A 192.0.2.8\n")
	for _, name := range []string{"wWw.eXample.org.", "www.example.ORG.", "aLias.example.org.", "Example.org.", "x.Star.example.org."} {
		for _, typ := range []uint16{dns.TypeA, dns.TypeNS, dns.TypeTXT} {
			m := new(dns.Msg).SetQuestion(name, typ)
			p, err := m.Pack()
			var q wire.Query
			if err != nil || !q.Parse(p) {
				t.Fatalf("%s: %v", name, err)
			}
			var w wire.Reply
			w.Reset(make([]byte, 0, 4096))
			w.FoldOwners()
			var a Answerer
			a.Answer(z, &w, &q)
			if err := m.Unpack(w.Finish(&q, 4096)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, rr := range append(m.Answer, m.Ns...) {
				if owner := rr.Header().Name; dns.CanonicalName(owner) == dns.CanonicalName(name) && owner != name {
					t.Errorf("%s %s: %v", name, dns.Type(typ), rr)
				}
			}
		}
	}
}
