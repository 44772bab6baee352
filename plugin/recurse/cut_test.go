package recurse

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// A reply whose header counts records that the datagram does not have was cut on its way, wherever that was: the whole
// one comes over TCP.
func TestCutReplies(t *testing.T) {
	for what, cut := range map[string]func(whole []byte, question int) []byte{
		"all records": func(b []byte, question int) []byte { return b[:question] },
		"one record":  func(b []byte, question int) []byte { return b[:question+(len(b)-question)/2] },
		"octets":      func(b []byte, _ int) []byte { return b[:len(b)-3] },
	} {
		t.Run(what, func(t *testing.T) {
			p, l, err := loopback.Listen()
			if err != nil {
				t.Fatal(err)
			}
			server := func(cut func([]byte, int) []byte) dns.HandlerFunc {
				return func(w dns.ResponseWriter, q *dns.Msg) {
					m := new(dns.Msg).SetReply(q)
					m.Authoritative, m.Compress = true, true
					question := m.Len()
					for i := range 2 {
						m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: 1, Ttl: 60}, A: net.IPv4(192, 0, 2, byte(i))})
					}
					b, err := m.Pack()
					if err != nil {
						t.Error(err)
					}
					_, _ = w.Write(cut(b, question))
				}
			}
			udp := &dns.Server{PacketConn: p, Handler: server(cut)}
			tcp := &dns.Server{Listener: l, Handler: server(func(b []byte, _ int) []byte { return b })}
			for _, s := range []*dns.Server{udp, tcp} {
				go func() { _ = s.ActivateAndServe() }()
				t.Cleanup(func() { _ = s.Shutdown() })
			}
			at, zone := netip.MustParseAddrPort(p.LocalAddr().String()), rrset.MustName("example.org.")
			r := silent(t, func(c *settings) {
				c.timeout = 10 * time.Second
				c.stubs[zone] = &store.Delegation{Zone: zone, Fixed: true, Hosts: []store.Host{{Addrs: []netip.Addr{at.Addr()}, Port: at.Port()}}}
			})
			j, _ := r.beginFor(queryFrom(t, "192.0.2.1", "www.example.org."), nil, nil, unlooked)
			if err := j.wait(context.Background()); err != nil {
				t.Fatal(err)
			}
			if res := j.result; res.Rcode != 0 || len(res.Answer) != 1 || res.Answer[0].N != 2 {
				t.Errorf("%+v", res)
			}
		})
	}
}
