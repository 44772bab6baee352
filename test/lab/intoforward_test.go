package lab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// An alias of the world that leads into a zone of *forward* is followed by *recurse*, which knows the servers of that
// zone if it has them as a stub, too.
func TestAliasIntoForward(t *testing.T) {
	answers := func(zone, name, rr string) string {
		return reply(t, func(q *dns.Msg) *dns.Msg {
			m := new(dns.Msg).SetReply(q)
			switch asked := strings.ToLower(q.Question[0].Name); {
			case asked == name && q.Question[0].Qtype == dns.TypeA:
				record, _ := dns.NewRR(rr)
				m.Answer = []dns.RR{record}
			default:
				soa, _ := dns.NewRR(zone + " 300 IN SOA a. b. 1 2 3 4 300")
				m.Ns = []dns.RR{soa}
				if !dns.IsSubDomain(asked, name) {
					m.Rcode = dns.RcodeNameError
				}
			}
			m.Authoritative = true
			return m
		})
	}
	world := answers(".", "www.example.", "www.example. 300 IN CNAME host.corp.")
	corp := answers("corp.", "host.corp.", "host.corp. 300 IN A 192.0.2.7")
	for more, want := range map[string]string{"": "NXDOMAIN 1", "  stub corp " + corp + "\n": "NOERROR 2"} {
		ours := serve(t, 0, fmt.Sprintf(" forward corp %s\n recurse {\n  stub . %s\n%s  allow_servers 127.0.0.0/8\n  special off\n }", corp, world, more))
		for name, want := range map[string]string{"host.corp.": "NOERROR 1", "www.example.": want} {
			m, err := dns.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), ours)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(dns.RcodeToString[m.Rcode], " ", len(m.Answer)); got != want {
				t.Errorf("%s with %q: %s, want %s\n%v", name, more, got, want, m)
			}
		}
	}
}
