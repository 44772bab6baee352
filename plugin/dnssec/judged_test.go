package dnssec

import (
	"fmt"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	resolver "github.com/coredns/coredns/plugin/pkg/resolver/validate"

	"github.com/miekg/dns"
)

// judge is what our own validator says of a reply, with these keys as anchors. It asks d for what it misses.
func judge(t *testing.T, d plugin.Handler, keys []*DNSKEY, m *dns.Msg) *resolver.Verdict {
	t.Helper()
	anchor := &resolver.Anchor{}
	for _, k := range keys {
		b := make([]byte, 4096)
		n, err := dns.PackRR(k.K, b, 0, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		_, owner, err := dns.UnpackDomainName(b, 0)
		if err != nil {
			t.Fatal(err)
		}
		anchor.Keys = append(anchor.Keys, string(b[owner+10:n]))
	}
	conf := &resolver.Config{
		Anchors: map[string]*resolver.Anchor{rrset.MustName("example.org."): anchor}, Algorithms: resolver.DefaultAlgorithms(false), Digests: resolver.DefaultDigests(),
		Iterations: 50, SkewLeast: time.Hour, SkewMost: 24 * time.Hour, BogusTTL: time.Minute, Budget: resolver.DefaultBudget(),
	}
	parsed := func(m *dns.Msg) *rrset.Message {
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		p, err := rrset.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	q := m.Question[0]
	task := resolver.New(conf, resolver.Question{Name: rrset.MustName(q.Name), Type: q.Qtype}, parsed(m), time.Now())
	for range 100 {
		missing := task.Step()
		if len(missing) == 0 {
			return task.Verdict()
		}
		for _, q := range missing {
			task.Give(q, parsed(ask(t, d, rrset.Text(q.Name), q.Type)))
		}
	}
	t.Fatalf("it has no end: %v", q)
	return nil
}

// What is signed for a reply is secure for the validator of resolvers, with all ways to deny, and is not once it was changed.
func TestJudged(t *testing.T) {
	next := source(t)
	for name, keys := range map[string][]*DNSKEY{
		"P-256": {pair(t, "example.org.", dns.ECDSAP256SHA256, 256, 257)}, "Ed25519": {pair(t, "example.org.", dns.ED25519, 256, 256)},
		"two": {pair(t, "example.org.", dns.RSASHA256, 2048, 257), pair(t, "example.org.", dns.ECDSAP256SHA256, 256, 256)},
	} {
		for _, compact := range []bool{false, true} {
			d := serving(t, next, keys...)
			d.compact, d.keepsRcodes = compact, func() bool { return true }
			for _, q := range []struct {
				name  string
				types []uint16
			}{
				{"example.org.", []uint16{dns.TypeSOA, dns.TypeNS, dns.TypeMX, dns.TypeDNSKEY, dns.TypeTXT, dns.TypeNSEC}},
				{"mail.example.org.", []uint16{dns.TypeA, dns.TypeTXT, dns.TypeSRV, dns.TypeNSEC}},
				{"odd.example.org.", []uint16{258, 65280, dns.TypeEUI48, dns.TypeA, dns.TypeAAAA}},
				{"www.example.org.", []uint16{dns.TypeA, dns.TypeCNAME, dns.TypeMX}}, {"lost.example.org.", []uint16{dns.TypeA}}, {"empty.example.org.", []uint16{dns.TypeAAAA}},
				{"x.w.example.org.", []uint16{dns.TypeTXT, dns.TypeA}}, {"*.w.example.org.", []uint16{dns.TypeTXT, dns.TypeA}}, {"x.old.example.org.", []uint16{dns.TypeA, dns.TypeCNAME}},
				{"ent.example.org.", []uint16{dns.TypeA, dns.TypeNS}}, {"nothing.example.org.", []uint16{dns.TypeA, dns.TypeMX, dns.TypeDS}}, {"*.example.org.", []uint16{dns.TypeA}},
				{"a.b.nothing.example.org.", []uint16{dns.TypeA}}, {"plain.example.org.", []uint16{dns.TypeDS}}, {"safe.example.org.", []uint16{dns.TypeDS}},
			} {
				for _, typ := range q.types {
					what := fmt.Sprintf("%s, compact %t: %s %s", name, compact, q.name, dns.Type(typ))
					m := ask(t, d, q.name, typ, "co")
					if v := judge(t, d, keys, m); v.Status != resolver.Secure || v.Rcode != m.Rcode {
						t.Errorf("%s: %v %q, rcode %d\n%v", what, v.Status, v.Text, v.Rcode, m)
					}
					if m = m.Copy(); spoilt(m) && judge(t, d, keys, m).Status == resolver.Secure {
						t.Errorf("%s: what was changed is secure\n%v", what, m)
					}
				}
			}
		}
	}
}
