package validate

import (
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"

	"github.com/miekg/dns"
)

// FuzzOrder checks that what is found out about a reply does not depend on the order in which its RRsets stand.
func FuzzOrder(f *testing.F) {
	w, _, z := lab(f, dns.ED25519)
	add := func(name string, typ uint16, rcode int, answer, ns []dns.RR) {
		m := new(dns.Msg)
		m.SetQuestion(name, typ)
		m.Response, m.Rcode, m.Answer, m.Ns = true, rcode, answer, ns
		b, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	a := z.signed(f, "", "www.example. 300 IN A 192.0.2.1")
	alias := z.signed(f, "", "b.example. 300 IN CNAME www.example.")
	first, second := z.signed(f, "", "d.example. 300 IN DNAME example."), z.signed(f, "", "e.d.example. 300 IN DNAME example.")
	soas := z.signed(f, "", soa)
	one, two := z.signed(f, "", "a.example. 300 IN NSEC c.example. A RRSIG NSEC"), z.signed(f, "", "example. 300 IN NSEC a.example. A RRSIG NSEC")
	near3 := z.signed(f, "", near("b.example.", 1, 0, true, "A RRSIG"))
	apex3 := z.signed(f, "", near("example.", 1, 0, false, "SOA RRSIG"))
	star3 := z.signed(f, "", near("*.example.", 1, 0, true, "A RRSIG"))
	add("www.example.", dns.TypeA, 0, a, nil)
	add("b.example.", dns.TypeA, 0, join(alias, a), nil)
	add("b.example.", dns.TypeA, 0, join(a, alias, one), nil)
	add("www.e.d.example.", dns.TypeA, 0, join(first, second, a), nil)
	add("www.d.example.", dns.TypeA, 0, join(first, a), two)
	add("b.example.", dns.TypeA, 3, nil, join(soas, one, two))
	add("b.example.", dns.TypeA, 3, nil, join(soas, near3, apex3, star3))
	add("b.example.", dns.TypeDS, 0, nil, join(one, near3, soas))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := rrset.Parse(b)
		if err != nil {
			return
		}
		judge := func(m *rrset.Message) *Verdict {
			task := New(&w.conf, Question{m.Name, m.Type}, m, testNow)
			for missing := task.Step(); len(missing) > 0; missing = task.Step() {
				for _, q := range missing {
					task.Give(q, w.replies[q])
				}
			}
			return task.Verdict()
		}
		v := judge(m)
		turned := *m
		for i := range turned.Section {
			turned.Section[i] = slices.Clone(m.Section[i])
			slices.Reverse(turned.Section[i])
		}
		if o := judge(&turned); o.Status != v.Status || o.Rcode != v.Rcode {
			t.Errorf("%v %q, rcode %d; in the other order %v %q, rcode %d", v.Status, v.Text, v.Rcode, o.Status, o.Text, o.Rcode)
		}
	})
}
