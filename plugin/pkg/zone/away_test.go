package zone

import (
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// away is a zone with aliases to what it does not have.
const away = apex + `www A 192.0.2.1
near CNAME www
child CNAME app.dyn
chain CNAME child
out CNAME www.example.net.
*.w CNAME app.dyn
d DNAME dyn
below CNAME x.d
*.s A 192.0.2.9
star CNAME x.s
a.ent A 192.0.2.3
empty CNAME ent
sub NS ns.sub
ns.sub A 192.0.2.4
cut CNAME www.sub
`

// An alias to a name that the zone has nothing at is for the caller, whether the name lies in the zone or not; one to a
// name that it has, or that lies below a cut, is not.
func TestAliasesLeadAway(t *testing.T) {
	z := build(t, "example.org.", away)
	for _, tc := range []struct {
		name   string
		result Result
		target string
		alone  Result // with nobody else to ask
	}{
		{"near.example.org.", Hit, "", 0},
		{"child.example.org.", External, "app.dyn.example.org.", NXDomain},
		{"chain.example.org.", External, "app.dyn.example.org.", NXDomain},
		{"out.example.org.", External, "www.example.net.", Hit},
		{"x.y.w.example.org.", External, "app.dyn.example.org.", NXDomain},
		{"app.d.example.org.", External, "app.dyn.example.org.", NXDomain},
		{"below.example.org.", External, "x.dyn.example.org.", NXDomain},
		{"star.example.org.", External, "x.s.example.org.", Hit},
		{"empty.example.org.", External, "ent.example.org.", Empty},
		{"cut.example.org.", Referral, "", 0},
		{"app.dyn.example.org.", NXDomain, "", 0},
		{"x.s.example.org.", Hit, "", 0},
	} {
		q := asking(t, tc.name)
		var a Answerer
		var w wire.Reply
		w.Reset(nil)
		r := a.Answer(z, &w, q)
		if r != tc.result || r == External && wire.Text(a.Target) != tc.target {
			t.Errorf("%s: result %d, target %s; want %d, %s", tc.name, r, wire.Text(a.Target), tc.result, tc.target)
			continue
		}
		if r != External {
			continue
		}
		if got := a.Alone(); got != tc.alone {
			t.Errorf("%s: alone %d, want %d", tc.name, got, tc.alone)
		}
	}
}

// What was found elsewhere is completed: with the zone's own NS records, with the SOA record that came with a denial,
// or with the zone's own where there came none.
func TestEnd(t *testing.T) {
	z := build(t, "example.org.", away)
	soa, err := dns.NewRR("dyn.example.org. 30 IN SOA ns hostmaster 1 2 3 4 5")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		result Result
		came   dns.RR
		rcode  int
		owners []string // of the authority section, in its order
	}{
		{Hit, nil, dns.RcodeSuccess, []string{"example.org.", "example.org."}},
		{NXDomain, nil, dns.RcodeNameError, []string{"example.org."}},
		{NXDomain, soa, dns.RcodeNameError, []string{"dyn.example.org."}},
		{NoData, soa, dns.RcodeSuccess, []string{"dyn.example.org."}},
		{Broken, nil, dns.RcodeServerFailure, nil},
	} {
		q := asking(t, "child.example.org.")
		var a Answerer
		var w wire.Reply
		w.Reset(nil)
		if r := a.Answer(z, &w, q); r != External {
			t.Fatal(r)
		}
		if tc.came != nil {
			if err := w.RR(wire.Authority, tc.came); err != nil {
				t.Fatal(err)
			}
		}
		a.End(tc.result)
		m := new(dns.Msg)
		if err := m.Unpack(w.Finish(q, 1232)); err != nil {
			t.Fatal(err)
		}
		var owners []string
		for _, rr := range m.Ns {
			owners = append(owners, rr.Header().Name)
		}
		if m.Rcode != tc.rcode || !m.Authoritative || len(m.Answer) != 1 || !slices.Equal(owners, tc.owners) {
			t.Errorf("result %d with %v:\n%v", tc.result, tc.came, m)
		}
	}
}

// A proof that came with the answer for the target is not added once more.
func TestProofsOnce(t *testing.T) {
	z := build(t, "example.org.", `@ SOA ns1 hostmaster 7 7200 3600 1209600 60
@ NS ns1
@ NSEC *.w.example.org. NS SOA RRSIG NSEC
*.w CNAME app.dyn
*.w NSEC www.example.org. CNAME RRSIG NSEC
www A 192.0.2.1
www NSEC example.org. A RRSIG NSEC
`)
	m := new(dns.Msg).SetQuestion("x.w.example.org.", dns.TypeA).SetEdns0(4096, true)
	p, _ := m.Pack()
	var q wire.Query
	q.Parse(p)
	var a Answerer
	var w wire.Reply
	w.Reset(nil)
	if r := a.Answer(z, &w, &q); r != External {
		t.Fatal(r)
	}
	came, _ := dns.NewRR("*.w.example.org. 60 IN NSEC www.example.org. CNAME RRSIG NSEC")
	w.RR(wire.Authority, came)
	a.End(Hit)
	reply := new(dns.Msg)
	if err := reply.Unpack(w.Finish(&q, 1232)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, rr := range reply.Ns {
		if rr.Header().Rrtype == dns.TypeNSEC {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d NSEC records:\n%v", n, reply)
	}
}

func asking(t *testing.T, name string) *wire.Query {
	t.Helper()
	p, _ := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
	q := new(wire.Query)
	if !q.Parse(p) {
		t.Fatal(name)
	}
	return q
}
