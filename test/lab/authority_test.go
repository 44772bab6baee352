package lab

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"
)

// What a resolver has found is nobody's authority, not when it comes out of a cache either; what a forward of the same
// block was told has the AA bit there, as old stub resolvers want it.
func TestAuthorityOfHits(t *testing.T) {
	server := reply(t, func(q *dns.Msg) *dns.Msg {
		m := new(dns.Msg).SetReply(q)
		m.Authoritative = q.Question[0].Name != "www.corp." // a resolver
		if q.Question[0].Qtype == dns.TypeA {
			rr, _ := dns.NewRR(q.Question[0].Name + " 300 IN A 192.0.2.7")
			m.Answer = []dns.RR{rr}
		}
		return m
	})
	ours := serve(t, 0, fmt.Sprintf(` cache
 forward corp %s
 recurse {
  stub example %s
  stub lab.corp %s
  allow_servers 127.0.0.0/8
  special off
 }`, server, server, server))
	for name, hits := range map[string]bool{"www.example.": false, "www.lab.corp.": false, "www.corp.": true} {
		for i := range 2 {
			if text, m := said(t, ours, name, dns.TypeA, nil); text != "NOERROR 0" || i > 0 && m.Authoritative != hits {
				t.Errorf("%s, %d: %s, AA %v", name, i, text, m.Authoritative)
			}
		}
	}
}
