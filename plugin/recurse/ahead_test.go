package recurse

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// The keys of a signed zone are asked for beside the first name in it where there is a validator, and nothing else is wanted.
func TestKeysAhead(t *testing.T) {
	for what, tc := range map[string]struct {
		v        *opinion
		prefetch bool
	}{"no validator": {nil, true}, "a validator": {new(opinion), true}, "prefetch off": {new(opinion), false}} {
		t.Run(what, func(t *testing.T) {
			wanted := tc.v != nil && tc.prefetch
			var once sync.Once
			keys := make(chan struct{})
			at := signedTree(t, func(q dns.Question) {
				switch {
				case q.Qtype == dns.TypeDNSKEY:
					once.Do(func() { close(keys) })
				case wanted:
					select {
					case <-keys: // else they are asked for when this has been answered
					case <-time.After(5 * time.Second):
						t.Error("the keys were not asked for meanwhile")
					}
				}
			})
			r := silent(t, func(c *settings) {
				c.timeout, c.port, c.prefetch = 10*time.Second, int(at.Port()), tc.prefetch
				c.hints = &store.Delegation{Zone: rrset.Root, Fixed: true, Hosts: []store.Host{{Name: rrset.MustName("a.root."), Addrs: []netip.Addr{at.Addr()}, Port: at.Port()}}}
			})
			if tc.v != nil {
				r.examineBy(tc.v, false)
			}
			j, _ := r.beginFor(queryFrom(t, "192.0.2.1", "www.z."), nil, nil, unlooked)
			if err := j.wait(context.Background()); err != nil || j.result.Rcode != 0 || len(j.result.Answer) == 0 {
				t.Fatalf("%v: %+v", err, j.result)
			}
			if !wanted {
				select {
				case <-keys:
					t.Error("keys were asked for")
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
}

// signedTree is a root's server, which delegates z, and its server on another address with the same port. That one calls f with
// each question before it answers.
func signedTree(t *testing.T, f func(dns.Question)) netip.AddrPort {
	t.Helper()
	root, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	at := netip.MustParseAddrPort(root.LocalAddr().String())
	zone, err := net.ListenPacket("udp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), at.Port()).String())
	if err != nil {
		t.Skip("the system has no address 127.0.0.2: ", err)
	}
	records := func(text ...string) (all []dns.RR) {
		for _, s := range text {
			rr, err := dns.NewRR(s)
			if err != nil {
				t.Error(err)
			}
			all = append(all, rr)
		}
		return all
	}
	for p, answer := range map[net.PacketConn]func(m *dns.Msg, q dns.Question){
		root: func(m *dns.Msg, q dns.Question) {
			if !strings.HasSuffix(strings.ToLower(q.Name), "z.") {
				m.Authoritative, m.Answer, m.Extra = true, records(". 300 IN NS a.root."), records("a.root. 300 IN A 127.0.0.1")
				return
			}
			m.Ns = records("z. 300 IN NS ns.z.", "z. 300 IN DS 7 13 2 00", "z. 300 IN RRSIG DS 13 1 300 20400101000000 20200101000000 7 . AAAA")
			m.Extra = records("ns.z. 300 IN A 127.0.0.2")
		},
		zone: func(m *dns.Msg, q dns.Question) {
			f(q)
			m.Authoritative, m.Answer = true, records(q.Name+" 300 IN A 192.0.2.1")
			if q.Qtype == dns.TypeDNSKEY {
				m.Answer = records(q.Name + " 300 IN DNSKEY 257 3 13 AAAA")
			}
		},
	} {
		server := &dns.Server{PacketConn: p, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
			m := new(dns.Msg).SetReply(q)
			answer(m, q.Question[0])
			m.SetEdns0(1232, true)
			_ = w.WriteMsg(m)
		})}
		go func() { _ = server.ActivateAndServe() }()
		t.Cleanup(func() { _ = server.Shutdown() })
	}
	return at
}
