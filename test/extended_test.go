package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// Return codes that need an OPT record come through forward and cache in both lanes to clients with EDNS; others get SERVFAIL.
func TestExtendedRcodes(t *testing.T) {
	upstream := dnstest.NewMultipleServer(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.SetEdns0(1232, false)
		m.Rcode = dns.RcodeBadTrunc
		m.Answer = []dns.RR{test.A(r.Question[0].Name + " 60 IN A 192.0.2.1")}
		w.WriteMsg(m)
	})
	defer upstream.Close()
	old := dnsserver.WireLane
	defer func() { dnsserver.WireLane = old }()
	for _, cache := range []string{"", "cache"} {
		for _, edns := range []bool{true, false} {
			var got [2]string
			for i := range got {
				dnsserver.WireLane = i == 0
				_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nlanespy\n"+cache+"\nforward . "+upstream.Addr+"\n}")
				onWire.Store(0)
				for range 2 {
					m := question("www.example.org.", dns.TypeA)
					want := dns.RcodeServerFailure
					if edns {
						m.SetEdns0(1232, false)
						want = dns.RcodeBadTrunc
					}
					if m = ask(t, "udp", udp, m); m == nil || m.Rcode != want {
						t.Fatalf("%q, EDNS %t, wire %t: got %v", cache, edns, i == 0, m)
					}
					m.Id = 0
					got[i] += fmt.Sprint(m)
				}
				if n := onWire.Load(); (n == 2) != (i == 0) {
					t.Errorf("%d answered in the wire lane", n)
				}
			}
			if got[0] != got[1] {
				t.Errorf("%q, EDNS %t: wire lane\n%s\nmessage lane\n%s", cache, edns, got[0], got[1])
			}
		}
	}
}

// What errors logs of a reply that rewrite has made of a failure is the same in both lanes.
func TestErrorsOfRewrittenFailures(t *testing.T) {
	bothLanes(t, func(t *testing.T) {
		out := captureLog(t)
		_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nlanespy\nerrors\nminimal\nrewrite rcode exact x.a.test SERVFAIL NXDOMAIN\nrewrite rcode exact y.a.test SERVFAIL REFUSED\nforward . "+loopback.Addr()+" {\nmax_fails 0\n}\n}")
		for name, want := range map[string]string{"x.a.test.": "0", "y.a.test.": "0", "z.a.test.": "2"} {
			ask(t, "udp", udp, question(name, dns.TypeA))
			line := "plugin/errors: " + want + " " + name + " A: "
			eventually.Holds(t, "logged: "+line, func() bool { return strings.Contains(out.String(), line) })
		}
	})
}
