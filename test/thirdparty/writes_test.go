package thirdparty

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// postman answers late, from another goroutine, when ServeDNS has returned.
type postman struct{ waiting sync.WaitGroup }

// rawhide writes bytes of its own, not a message.
type rawhide struct{}

// poster answers all queries with one record that it has made once.
type poster struct{ record dns.RR }

func init() {
	add("postman", "file", func(c *caddy.Controller) error {
		p := new(postman)
		c.OnShutdown(func() error { p.waiting.Wait(); return nil })
		dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return p })
		return nil
	})
	add("rawhide", "file", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return rawhide{} })
		return nil
	})
	add("poster", "file", func(c *caddy.Controller) error {
		record := oneAddress(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)).Answer[0]
		dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return poster{record} })
		return nil
	})
}

// oneAddress is a reply to r.
func oneAddress(r *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetReply(r)
	rr, _ := dns.NewRR(r.Question[0].Name + " 60 IN A 192.0.2.1")
	m.Answer = []dns.RR{rr}
	return m
}

func (p *postman) Name() string { return "postman" }

func (p *postman) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	p.waiting.Go(func() {
		time.Sleep(20 * time.Millisecond)
		w.WriteMsg(oneAddress(r))
	})
	return dns.RcodeSuccess, nil
}

func (rawhide) Name() string { return "rawhide" }

func (rawhide) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	b, err := oneAddress(r).Pack()
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	_, err = w.Write(b)
	return dns.RcodeSuccess, err
}

func (poster) Name() string { return "poster" }

func (p poster) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	m.Answer = []dns.RR{p.record}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// aboves is what stands above a plugin that writes, by what it does with a reply.
func aboves() map[string]string {
	return map[string]string{
		"alone": "", "tapped": "dnstap tcp://" + loopback.Addr() + " full\n", "logged": "log\nerrors\nmetadata\n", "shuffled": "loadbalance\nminimal\n", "cached": "cache 60\n",
		"verified": "tsig {\nsecret key. MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=\n}\n", "throttled": "throttle {\nresponses 1000\n}\n",
		"translated": "dns64\ncookie\nany\n", "counted": "prometheus " + loopback.Addr() + "\n", "changed": "header {\nresponse set ra\n}\nrewrite ttl exact x.example.org 5\nnsid\n",
	}
}

// Writers of the plugins above hand on what comes late, and what comes as bytes, in whichever lane they were called.
func TestWrites(t *testing.T) {
	for name, above := range aboves() {
		for _, last := range []string{"postman", "rawhide"} {
			t.Run(name+" "+last, func(t *testing.T) {
				inBothLanes(t, block(above+last), func(t *testing.T, s *server) {
					var clients sync.WaitGroup
					for _, host := range []string{"a", "b", "c", "d"} {
						clients.Go(func() {
							for range 3 {
								s.expect(host+".example.org.", dns.TypeA, "NOERROR A 192.0.2.1")
							}
						})
					}
					clients.Wait()
				})
			})
		}
	}
}

// A record that a plugin answers many queries with at one time is only read, also by the plugins above, which may change
// what is sent. It is for the race detector.
func TestSharedRecord(t *testing.T) {
	all := aboves()
	all["altered"] = "rewrite ttl exact www.example.org 5\n"
	for name, above := range all {
		t.Run(name, func(t *testing.T) {
			inBothLanes(t, block(above+"poster"), func(t *testing.T, s *server) {
				var clients sync.WaitGroup
				for range 4 {
					clients.Go(func() {
						for range 3 {
							s.expect("www.example.org.", dns.TypeA, "NOERROR A 192.0.2.1")
						}
					})
				}
				clients.Wait()
			})
		})
	}
}
