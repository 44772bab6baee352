package test

import (
	"fmt"
	"net"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// tailored begins a server that tells each network that a query names that its answer is for a /16. It returns its address.
func tailored(t *testing.T) string {
	t.Helper()
	p, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s := &dns.Server{PacketConn: p, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 300}, A: net.IPv4(192, 0, 2, 1)}}
		if opt := q.IsEdns0(); opt != nil {
			m.SetEdns0(1232, false)
			for _, o := range opt.Option {
				if e, ok := o.(*dns.EDNS0_SUBNET); ok {
					own := *e
					own.SourceScope = 16
					m.IsEdns0().Option = append(m.IsEdns0().Option, &own)
				}
			}
		}
		w.WriteMsg(m)
	})}
	go s.ActivateAndServe()
	t.Cleanup(func() { s.Shutdown() })
	return p.LocalAddr().String()
}

// A client that names its network is told for which one the answer is, be it a new one or out of the cache; one that does not is told of
// none, also where the server has named one for it (RFC 7871 §7.2.2).
func TestClientsOfNetworks(t *testing.T) {
	const names, none = "[198.51.100.0/24/16]", "[]"
	upstream := tailored(t)
	for chain, want := range map[string][3]string{ // of one who names no network, one who does, and one with an option of its own
		"":                                 {none, names, none},
		"cache\n":                          {none, names, none},
		"rewrite edns0 subnet set 24 56\n": {none, "[127.0.0.0/24/16]", none},
		"rewrite edns0 subnet set 24 56\ncache\n": {none, "[127.0.0.0/24/16]", none},
	} {
		_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\n"+chain+"forward . "+upstream+"\n}")
		for i, want := range want {
			for range 2 { // the second one may come out of the cache
				q := question("www.example.org.", dns.TypeA).SetEdns0(1232, false)
				switch i {
				case 2:
					q.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: 65001, Data: []byte("x")}}
				case 1:
					q.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: net.IPv4(198, 51, 100, 0)}}
				}
				m := ask(t, "udp", udp, q)
				if m == nil || len(m.Answer) != 1 || m.IsEdns0() == nil {
					t.Fatalf("%q: got %v", chain, m)
				}
				if got := fmt.Sprint(m.IsEdns0().Option); got != want {
					t.Errorf("%q: told %s, want %s", chain, got, want)
				}
			}
		}
	}
}
