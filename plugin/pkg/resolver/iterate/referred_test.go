package iterate

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// That a zone has no DS RRset is known by the referral to it. That is proof enough for a validator; clients get the
// parent's own denial, with its SOA record (RFC 2308 §2.2): BIND takes one without it for malformed.
func TestReferredDenialOfDS(t *testing.T) {
	w := small(t)
	org := authority{[]*zoneText{parseZone(t, orgZone)}}
	denial := []dns.RR{
		rr(t, "example.org. 300 IN NSEC z.org. NS RRSIG NSEC"),
		rr(t, "example.org. 300 IN RRSIG NSEC 13 2 300 20400101000000 20200101000000 1 org. AA=="),
	}
	w.servers[addr("10.0.1.1")] = func(q *dns.Msg, tcp bool) *dns.Msg {
		m := org.answer(q, tcp)
		if q.Question[0].Qtype == dns.TypeDS {
			m.Authoritative, m.Ns, m.Extra = true, []dns.RR{rr(t, "org. 300 IN SOA a.nic.org. x. 1 2 3 4 300")}, nil
		}
		m.Ns = append(m.Ns, denial...)
		return m
	}
	w.resolve("www.example.org.", "A")
	w.queries("")
	ds := Question{rrset.MustName("example.org."), rrset.TypeDS}
	has := func(r *Result, name string, typ uint16) bool {
		return find(r.Authority, rrset.MustName(name), typ) != nil
	}
	r, ok := new(Kept).Answer(w.conf, ds, &advice.Source{Proof: true}, w.now)
	if !ok || !has(r, "example.org.", rrset.TypeNSEC) {
		t.Errorf("a validator is told %v", r)
	}
	if r, ok := new(Kept).Answer(w.conf, ds, &advice.Source{}, w.now); ok {
		t.Errorf("a client is told %s", r.text())
	}
	soa := &rrset.Set{Name: rrset.MustName("org."), Type: wire.TypeSOA, TTL: 60}
	w.conf.SOA = func(denial *rrset.Set, _ store.Time) *rrset.Set {
		if denial.Name != ds.Name || denial.Type != rrset.TypeNSEC {
			t.Errorf("asked for the SOA record by %s", denial.Name)
		}
		return soa
	}
	if r, ok := new(Kept).Answer(w.conf, ds, nil, w.now); !ok || !has(r, "example.org.", rrset.TypeNSEC) || !has(r, "org.", wire.TypeSOA) {
		t.Errorf("with a known SOA record a client is told %v", r)
	}
	w.conf.SOA = nil
	for _, queries := range []int{1, 0} {
		r := w.want("example.org.", "DS", "NOERROR")
		if n := w.queries(""); n != queries || !has(r, "example.org.", rrset.TypeNSEC) || !has(r, "org.", wire.TypeSOA) {
			t.Errorf("after %d queries: %v", n, r.Authority)
		}
	}
}
