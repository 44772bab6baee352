package validator

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// private keeps 192.0.2.0/24 from clients, but for one name.
type private struct{}

func (private) Guarded(name string, a netip.Addr) bool {
	return strings.HasPrefix(a.String(), "192.0.2.") && !strings.HasPrefix(name, "\x03not")
}

// Addresses that are kept from clients are taken out when the answer is validated: what is left of it has no AD, and says
// why. With CD they are taken out, too, and of unsigned answers.
func TestScreened(t *testing.T) {
	v, src := lab(t, "")
	v.guard = private{}
	src.replies["alias.example.A"] = src.replies["alias.example.CNAME"]
	src.replies["both.test.A"] = &dns.Msg{Answer: []dns.RR{test.A("both.test. 300 IN A 192.0.2.1"), test.A("both.test. 300 IN A 198.51.100.1")}}
	src.replies["not.test.A"] = &dns.Msg{Answer: []dns.RR{test.A("not.test. 300 IN A 192.0.2.1")}}
	cd := func(m *dns.Msg) { do(m); m.CheckingDisabled = true }
	for _, c := range []struct {
		name    string
		change  func(*dns.Msg)
		records int
		told    bool
	}{
		{"www.example.", do, 0, true}, {"WWW.example.", do, 0, true}, {"www.example.", cd, 0, true}, {"bad.example.", cd, 0, true}, {"plain.test.", do, 0, true},
		{"both.test.", do, 1, true}, {"both.test.", cd, 1, true}, {"not.test.", do, 1, false}, {"not.test.", cd, 1, false},
	} {
		m, _, err := ask(t, v, c.name, c.change)
		if err != nil || m.Rcode != dns.RcodeSuccess || m.AuthenticatedData || len(m.Answer) != c.records || explains(m, dns.ExtendedErrorCodeFiltered) != c.told {
			t.Errorf("%s: %v %v", c.name, m, err)
		}
	}
	if m, _, err := ask(t, v, "alias.example.", do); err != nil || m.AuthenticatedData || len(m.Answer) != 2 || m.Answer[0].Header().Rrtype != dns.TypeCNAME {
		t.Errorf("alias: %v %v", m, err)
	}
	if err := v.negatives.set("\x07example\x00", time.Now().Add(time.Hour), false); err != nil {
		t.Fatal(err)
	}
	if m, _, err := ask(t, v, "www.example.", do); err != nil || !explains(m, dns.ExtendedErrorCodeFiltered) || !explains(m, 33) {
		t.Errorf("below a negative trust anchor: %v %v; want both extended errors", m, err)
	}
	if err := v.negatives.set("\x07example\x00", time.Time{}, false); err != nil {
		t.Fatal(err)
	}
	v.guard = nil
	if m, _, err := ask(t, v, "www.example.", do); err != nil || !m.AuthenticatedData || len(m.Answer) != 2 {
		t.Errorf("without a guard: %v %v", m, err)
	}
}

// A hint is taken out of its record, and the rest stays.
func TestScreenedHints(t *testing.T) {
	v, src := lab(t, "")
	v.guard = private{}
	rr, err := dns.NewRR("svc.test. 300 IN HTTPS 1 . alpn=h2 ipv4hint=192.0.2.7 ipv6hint=2001:db8::7")
	if err != nil {
		t.Fatal(err)
	}
	src.replies["svc.test.HTTPS"] = &dns.Msg{Answer: []dns.RR{rr}}
	r := new(dns.Msg).SetQuestion("svc.test.", dns.TypeHTTPS)
	r.SetEdns0(1232, true)
	a, err := plugin.NewWireAdapter(&test.ResponseWriter{}, r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Free()
	a.Query.SetMayBlock(true)
	m := new(dns.Msg).SetReply(r)
	m.Answer = []dns.RR{rr}
	if err := a.Reply.SetMsg(m); err != nil {
		t.Fatal(err)
	}
	v.screen(&a.Reply, &a.Query)
	left, err := a.Reply.MsgOPT(r)
	const want = `svc.test.	300	IN	HTTPS	1 . alpn="h2" ipv6hint="2001:db8::7"`
	if err != nil || len(left.Answer) != 1 || left.Answer[0].String() != want || !explains(left, dns.ExtendedErrorCodeFiltered) {
		t.Errorf("%v %v", left, err)
	}
}
