package iterate

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// A parent's address of a server is used as a last resort, also if the server's own zone denies its name by a referral
// to nowhere.
func TestParentsAddress(t *testing.T) {
	w := newWorld(t)
	w.serve("10.0.0.1", rootZone)
	w.serve("10.0.1.1", `
org. 3600 IN SOA a.nic.org. x. 1 2 3 4 300
shop.org. 3600 IN NS ns.host.net.
`)
	w.serve("10.0.1.2", `
net. 3600 IN SOA a.nic.net. x. 1 2 3 4 300
host.net. 3600 IN NS ns.host.net.
ns.host.net. 3600 IN A 10.0.3.1
`)
	w.serve("10.0.3.1", `
host.net. 3600 IN SOA ns.host.net. x. 1 2 3 4 300
ns.host.net. 3600 IN NS nowhere.host.net.
`, `
shop.org. 3600 IN SOA ns.host.net. x. 1 2 3 4 300
www.shop.org. 3600 IN A 192.0.2.9
`)
	w.want("www.shop.org.", "A", "NOERROR; www.shop.org. A 192.0.2.9")
}

// A server that refers a question for DS records to the zone below has told them with that, or that there are none.
func TestReferralForDS(t *testing.T) {
	const ds = "sub.example.org. 3600 IN DS 1 13 2 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	for what, tc := range map[string]struct{ beside, want string }{
		"DS":      {ds, "NOERROR; sub.example.org. DS "},
		"denial":  {"sub.example.org. 300 IN NSEC z.example.org. NS RRSIG NSEC", "NOERROR"},
		"nothing": {"", "SERVFAIL; EDE 22"},
	} {
		w := small(t)
		refers := func(q *dns.Msg, _ bool) *dns.Msg {
			m := new(dns.Msg).SetReply(q)
			for _, text := range []string{"sub.example.org. 3600 IN NS ns.sub.example.org.", tc.beside} {
				if rr, err := dns.NewRR(text); err != nil {
					t.Fatal(err)
				} else if rr != nil {
					m.Ns = append(m.Ns, rr)
				}
			}
			return m
		}
		w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = refers, refers
		r := w.want("sub.example.org.", "DS", tc.want)
		if denied := find(r.Authority, rrset.MustName("sub.example.org."), rrset.TypeNSEC) != nil; denied != (what == "denial") {
			t.Errorf("%s: a denial is told: %v", what, denied)
		}
	}
}

// A referral that tells no address of a zone's servers, which are in the zone, leads nowhere: another server of the parent may tell
// them. If none does that is the end, soon.
func TestReferralWithoutAddresses(t *testing.T) {
	for i := range 20 {
		all := i%2 == 0
		w := small(t)
		w.serve("10.0.0.1", rootZone+"org. 86400 IN NS b.nic.org.\nb.nic.org. 86400 IN A 10.0.1.2\n")
		w.serve("10.0.1.2", orgZone)
		for _, at := range []string{"10.0.1.1", "10.0.1.2"} {
			whole := w.servers[addr(at)]
			w.servers[addr(at)] = func(q *dns.Msg, tcp bool) *dns.Msg {
				m := whole(q, tcp)
				if all || at == "10.0.1.1" {
					m.Extra = nil
				}
				return m
			}
		}
		want := "NOERROR; www.example.org. A 192.0.2.1"
		if all {
			want = "SERVFAIL; EDE 22"
		}
		if w.want("www.example.org.", "A", want); len(w.asked) > 16 {
			t.Errorf("%d queries: %v", len(w.asked), w.asked)
		}
	}
}
