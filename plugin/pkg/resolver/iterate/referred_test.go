package iterate

import (
	"strings"
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

// What a referral said of DS records ends with their own TTL, or that of their denial, be the delegation meant to live
// longer: a zone that changes its keys, or is signed from now on, has waited for that, and no longer.
func TestReferredDSEnds(t *testing.T) {
	const sigs = " 300 IN RRSIG %s 13 2 300 20400101000000 20200101000000 1 org. AA=="
	for what, records := range map[string][]string{
		"DS":       {"example.org. 300 IN DS 1 13 2 00", strings.Replace("example.org."+sigs, "%s", "DS", 1)},
		"a denial": {"example.org. 300 IN NSEC z.org. NS RRSIG NSEC", strings.Replace("example.org."+sigs, "%s", "NSEC", 1)},
	} {
		w := small(t)
		org := authority{[]*zoneText{parseZone(t, orgZone)}}
		w.servers[addr("10.0.1.1")] = func(q *dns.Msg, tcp bool) *dns.Msg {
			m := org.answer(q, tcp)
			if q.Question[0].Qtype == dns.TypeDS {
				m.Authoritative, m.Ns, m.Extra = true, nil, nil
				m.Answer = []dns.RR{rr(t, "example.org. 300 IN DS 2 13 2 00")}
				return m
			}
			for _, text := range records {
				m.Ns = append(m.Ns, rr(t, text))
			}
			return m
		}
		w.resolve("www.example.org.", "A")
		ds := Question{rrset.MustName("example.org."), rrset.TypeDS}
		for i, left := range []uint32{300, 100, 0} {
			r, ok := new(Kept).Answer(w.conf, ds, &advice.Source{Proof: true}, w.now)
			if ok != (left > 0) {
				t.Fatalf("%s, look %d: kept: %v", what, i, ok)
			}
			for _, s := range append(r.records(), nil) {
				if s != nil && s.TTL != left {
					t.Errorf("%s, look %d: a TTL of %d, want %d", what, i, s.TTL, left)
				}
			}
			w.now += 200 * store.Second
		}
		if r := w.resolve("example.org.", "DS"); len(r.Answer) != 1 || r.Answer[0].First()[:2] != "\x00\x02" {
			t.Errorf("%s: after that there is %s", what, r.text())
		}
	}
}

// records are all RRsets of a Result, none if it is nil.
func (r *Result) records() []*rrset.Set {
	if r == nil {
		return nil
	}
	return append(r.Answer, r.Authority...)
}
