package lab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// Clients that do not desire recursion get what is kept, validated, else a referral where snoop allows that, also
// from a validator above (R54): a referral says nothing of the name that could be proven.
func TestSnoopAboveValidator(t *testing.T) {
	l, err := Build(t.TempDir(), loopback.Port(), 3, 3)
	if err != nil {
		t.Fatal(err)
	}
	rrs, ds := signedRoot(t, l)
	startWithRoot(t, l, rrs)
	validator := fmt.Sprintf(" validator {\n  anchor %q\n  signal off\n }\n", strings.ReplaceAll(ds, "\t", " "))
	block := fmt.Sprintf("%s recurse {\n  hints %s\n  authority_port %d\n  allow_servers 127.0.0.0/8\n  family ipv4\n  snoop\n", validator, l.Hints, l.Port)
	for i, above := range []string{"", " cache\n"} {
		ours := serve(t, 0, fmt.Sprintf("%s%s  timeout %ds\n }", above, block, 4+i)) // else they would share what they keep
		cold := func(m *dns.Msg) { m.RecursionDesired = false }
		for _, c := range []struct {
			name   string
			change func(*dns.Msg)
			want   string
			ns     string // in the authority section
		}{
			{"www.z0.t1.", cold, "NOERROR 0", "."}, {"no.such.", nil, "NXDOMAIN 1", ""}, {"no.such.", cold, "NXDOMAIN 1", ""},
			{"www.z0.t1.", nil, "NOERROR 0", ""}, {"other.t1.", cold, "NOERROR 0", "t1."}, {"www.z0.t1.", cold, "NOERROR 0", ""},
		} {
			got, m := said(t, ours, c.name, dns.TypeA, c.change)
			ns := ""
			for _, rr := range m.Ns {
				if rr.Header().Rrtype == dns.TypeNS {
					ns = rr.Header().Name
				}
			}
			if got != c.want || ns != c.ns || m.Authoritative {
				t.Errorf("%q %s, RD %v: %s, NS of %q, AA %v; want %s, %q", above, c.name, m.RecursionDesired, got, ns, m.Authoritative, c.want, c.ns)
			}
		}
	}
}

// Forwards of the block refer such clients to what stood beside their upstreams' answers, from *cache* as little as those
// above, and ask upstreams for what nobody has told of.
func TestSnoopBesideForward(t *testing.T) {
	l, err := Build(t.TempDir(), loopback.Port(), 3, 3)
	if err != nil {
		t.Fatal(err)
	}
	up := reply(t, func(q *dns.Msg) *dns.Msg {
		m := new(dns.Msg).SetReply(q)
		a, _ := dns.NewRR(q.Question[0].Name + " 300 IN A 192.0.2.7")
		ns, _ := dns.NewRR("told.corp. 300 IN NS ns.told.corp.")
		if m.Answer = []dns.RR{a}; strings.HasSuffix(q.Question[0].Name, "told.corp.") {
			m.Ns = []dns.RR{ns}
		}
		return m
	})
	for i, snoop := range []string{"snoop", ""} {
		ours := serve(t, 0, fmt.Sprintf(" cache\n forward corp %s\n recurse {\n  hints %s\n  authority_port %d\n  allow_servers 127.0.0.0/8\n  timeout %ds\n  %s\n }",
			up, l.Hints, l.Port, 7+i, snoop))
		cold := func(m *dns.Msg) { m.RecursionDesired = false }
		for _, c := range []struct {
			name    string
			change  func(*dns.Msg)
			answers int
		}{
			{"x.told.corp.", cold, 1}, {"www.told.corp.", nil, 1}, {"www.told.corp.", cold, 1}, {"y.told.corp.", cold, i}, {"y.told.corp.", nil, 1},
			{"y.told.corp.", cold, 1}, {"other.corp.", cold, 1},
		} {
			got, m := said(t, ours, c.name, dns.TypeA, c.change)
			refers := len(m.Answer) == 0 && len(m.Ns) == 1 && m.Ns[0].Header().Name == "told.corp." && m.Ns[0].Header().Rrtype == dns.TypeNS
			if got != "NOERROR 0" || len(m.Answer) != c.answers || refers != (c.answers == 0) {
				t.Errorf("%q %s, RD %v: %s\n%v", snoop, c.name, m.RecursionDesired, got, m)
			}
		}
	}
}
