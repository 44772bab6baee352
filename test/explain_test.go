package test

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// Why a query failed is told to clients with EDNS, in both lanes and over both transports, where forward's option ede asks for it.
func TestForwardExplains(t *testing.T) {
	nobody := loopback.Addr()
	old := dnsserver.WireLane
	defer func() { dnsserver.WireLane = old }()
	for _, tc := range []struct {
		option    string
		edns, has bool
	}{
		{"ede", true, true},
		{"ede", false, false},
		{"", true, false},
	} {
		for _, wire := range []bool{true, false} {
			dnsserver.WireLane = wire
			_, udp, tcp := start(t, ".:0 {\nbind 127.0.0.1\nlanespy\ncache\nforward . "+nobody+" {\nmax_fails 0\n"+tc.option+"\n}\n}")
			onWire.Store(0)
			for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
				m := question("www.example.org.", dns.TypeA)
				if tc.edns {
					m.SetEdns0(1232, false)
				}
				m = ask(t, network, addr, m)
				if m == nil || m.Rcode != dns.RcodeServerFailure || (m.IsEdns0() != nil) != tc.edns {
					t.Fatalf("%+v, wire %t, %s: got %v", tc, wire, network, m)
				}
				var ede *dns.EDNS0_EDE
				if tc.edns {
					for _, o := range m.IsEdns0().Option {
						ede, _ = o.(*dns.EDNS0_EDE)
					}
				}
				if (ede != nil) != tc.has || ede != nil && (ede.InfoCode != dns.ExtendedErrorCodeNetworkError || !strings.HasPrefix(ede.ExtraText, nobody+": ")) {
					t.Errorf("%+v, wire %t, %s: told %v", tc, wire, network, ede)
				}
			}
			if n := onWire.Load(); wire != (n == 2) {
				t.Errorf("%d answered in the wire lane", n)
			}
		}
	}
}
