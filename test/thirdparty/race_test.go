package thirdparty

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// sprint asks all its upstreams at once, about the one request, and replies with what comes first. The others run on
// when ServeDNS has long returned.
type sprint struct {
	proxies []*proxy.Proxy
	running sync.WaitGroup
	late    atomic.Int64
}

var lastSprint *sprint // the one set up last

func init() {
	add("sprint", "file", func(c *caddy.Controller) error {
		s := new(sprint)
		for c.Next() {
			for _, addr := range c.RemainingArgs() {
				p := proxy.NewProxy("sprint", addr, transport.DNS)
				p.SetExpire(10 * time.Second)
				p.SetReadTimeout(30 * time.Second)
				p.GetHealthchecker().SetDomain("example.org.")
				s.proxies = append(s.proxies, p)
			}
		}
		c.OnStartup(func() error {
			for _, p := range s.proxies {
				p.Start(time.Hour)
			}
			return nil
		})
		c.OnShutdown(func() error {
			for _, p := range s.proxies {
				p.Stop()
			}
			return nil
		})
		lastSprint = s
		dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return s })
		return nil
	})
}

func (s *sprint) Name() string { return "sprint" }

func (s *sprint) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	type result struct {
		m   *dns.Msg
		err error
	}
	state := request.Request{W: w, Req: r}
	first := make(chan result, len(s.proxies))
	var done atomic.Bool
	for _, p := range s.proxies {
		s.running.Go(func() {
			m, addr, _, err := p.Connect(context.WithoutCancel(ctx), state, proxy.Options{})
			if err == nil && (m.Id != r.Id || addr == nil) {
				err = fmt.Errorf("reply %d from %v to %d", m.Id, addr, r.Id)
			}
			if err == nil && done.Load() {
				s.late.Add(1)
			}
			first <- result{m, err}
		})
	}
	for range s.proxies {
		if got := <-first; got.err == nil {
			done.Store(true)
			return dns.RcodeSuccess, w.WriteMsg(got.m)
		}
	}
	return dns.RcodeServerFailure, nil
}

func TestSprint(t *testing.T) {
	quick := answering(t, "192.0.2.1").Addr
	var held sync.RWMutex // while the slow one is not to reply
	slow := dnstest.NewMultipleServer(func(w dns.ResponseWriter, r *dns.Msg) {
		held.RLock()
		defer held.RUnlock()
		w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNotZone))
	})
	t.Cleanup(slow.Close)
	inBothLanes(t, block("sprint "+slow.Addr+" "+quick+" "+slow.Addr), func(t *testing.T, s *server) {
		held.Lock()
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				for range 5 {
					s.expect("www.example.org.", dns.TypeA, "NOERROR A 192.0.2.1")
				}
			})
		}
		clients.Wait()
		held.Unlock()
		lastSprint.running.Wait()
		if n := lastSprint.late.Load(); n != 2*8*5*2 {
			t.Errorf("%d of the losers got a reply", n)
		}
	})
}
