package cache

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/forward"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// Tests of caches in servers, with upstreams on the loopback interface.

func init() {
	at := slices.Index(dnsserver.Directives, "cache")
	dnsserver.Directives = slices.Insert(slices.Insert(dnsserver.Directives, at+1, "foreign", "mutable", "asking"), at, "bothlanes")
	plugin.Register("bothlanes", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			if below, ok := next.(*Cache); ok {
				madeBelow = append(madeBelow, below)
			}
			return &bothLanes{next: next}
		})
		return nil
	})
	plugin.Register("mutable", func(c *caddy.Controller) error {
		c.Next()
		zones := c.RemainingArgs()
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return &mutable{bothLanes{next: next}, zones} })
		return nil
	})
	plugin.Register("foreign", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			return plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
				return plugin.NextOrFailure("foreign", next, ctx, w, r)
			})
		})
		return nil
	})
}

// bothLanes sends queries with odd ids to the message lane.
type bothLanes struct{ next plugin.Handler }

var byMessage atomic.Int64 // queries in the message lane
var madeBelow []*Cache     // those below a bothLanes, in the order in which they were made

func (b *bothLanes) Name() string             { return "bothlanes" }
func (b *bothLanes) WireSelf() plugin.Handler { return b }

func (b *bothLanes) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	byMessage.Add(1)
	return plugin.NextOrFailure(b.Name(), b.next, ctx, w, r)
}

func (b *bothLanes) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if q.ID()%2 == 1 {
		return wire.Unpack
	}
	return plugin.NextWire(b.Name(), b.next, ctx, w, q)
}

// upstream answers each query, after a while, with an address and TTL 300. It tells networks that queries name to be the answer's.
type upstream struct {
	addr  string
	asked atomic.Int64
	conn  net.PacketConn
	wait  time.Duration
}

func newUpstream(t *testing.T, wait time.Duration) *upstream {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{addr: conn.LocalAddr().String(), conn: conn, wait: wait}
	t.Cleanup(u.end)
	go func() {
		b := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			r := new(dns.Msg)
			if r.Unpack(b[:n]) != nil {
				continue
			}
			m := new(dns.Msg).SetReply(r)
			rr, _ := dns.NewRR(fmt.Sprintf("%s 300 IN A 192.0.2.%d", r.Question[0].Name, u.asked.Add(1)%250))
			m.Answer = []dns.RR{rr}
			reply, _ := m.Pack()
			time.AfterFunc(u.wait, func() { conn.WriteTo(reply, from) })
		}
	}()
	return u
}

func (u *upstream) end() { u.conn.Close() }

// served is a server with a Corefile.
type served struct {
	t        *testing.T
	instance *caddy.Instance
}

func corefileOf(text string) caddy.Input {
	return caddy.CaddyfileInput{Filepath: "Corefile", Contents: []byte(text), ServerTypeName: "dns"}
}

func serve(t *testing.T, corefile string) *served {
	t.Helper()
	i, err := caddy.Start(corefileOf(corefile))
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t, i}
	t.Cleanup(s.end)
	return s
}

func (s *served) end() {
	for _, err := range s.instance.ShutdownCallbacks() {
		s.t.Error(err)
	}
	if err := s.instance.Stop(); err != nil {
		s.t.Error(err)
	}
}

// reload takes another Corefile and reports whether that went well.
func (s *served) reload(corefile string) bool {
	next, err := s.instance.Restart(corefileOf(corefile))
	s.instance = next
	return err == nil
}

// ask asks with an id, and is nil if there is no answer.
func (s *served) ask(m *dns.Msg, id uint16) *dns.Msg {
	m = m.Copy()
	m.Id = id
	c := dns.Client{Timeout: 5 * time.Second}
	reply, _, err := c.Exchange(m, s.instance.Servers()[0].LocalAddr().String())
	if err != nil {
		s.t.Errorf("%s: %v", m.Question[0].Name, err)
	}
	return reply
}

// Cold queries for one name, half of them through each lane, are one upstream query, or one for each DO bit.
func TestColdQueriesAreOne(t *testing.T) {
	for _, bits := range []int{1, 2} {
		u := newUpstream(t, 400*time.Millisecond)
		s := serve(t, ".:0 {\nbind 127.0.0.1\nbothlanes\ncache\nforward . "+u.addr+"\n}")
		messages := byMessage.Load()
		var answered atomic.Int64
		var wg sync.WaitGroup
		began := time.Now()
		for i := range 50 {
			wg.Go(func() {
				m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
				m.SetEdns0(1232, i%4 >= 2 && bits == 2)
				if r := s.ask(m, uint16(i)); r != nil && r.Rcode == 0 && len(r.Answer) == 1 {
					answered.Add(1)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); answered.Load() != 50 || u.asked.Load() != int64(bits) || took > 3*time.Second {
			t.Errorf("%d answered in %v, the upstream was asked %d times for %d DO bits", answered.Load(), took, u.asked.Load(), bits)
		}
		if n := byMessage.Load() - messages; n != 25 {
			t.Errorf("%d took the message lane", n)
		}
	}
}

// A client's network does not shape the answers of others, in either lane, also if the upstream knows nothing of networks.
func TestNetworksInAServer(t *testing.T) {
	u := newUpstream(t, 0)
	s := serve(t, ".:0 {\nbind 127.0.0.1\nbothlanes\ncache\nforward . "+u.addr+"\n}")
	answers := map[string]string{}
	for id := range uint16(2) {
		for _, network := range []string{"1.2.3.0/24", "", "5.6.7.0/24", "1.2.3.0/24", ""} {
			m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
			if network != "" {
				from(network)(m)
			}
			r := s.ask(m, id)
			if r == nil || len(r.Answer) != 1 {
				t.Fatal(r)
			}
			a := r.Answer[0].(*dns.A).A.String()
			if answers[network] == "" {
				answers[network] = a
			} else if answers[network] != a {
				t.Errorf("id %d, network %q: %s, was %s", id, network, a, answers[network])
			}
		}
	}
	if answers[""] == answers["1.2.3.0/24"] || answers[""] == answers["5.6.7.0/24"] || answers["1.2.3.0/24"] == answers["5.6.7.0/24"] || u.asked.Load() != 3 {
		t.Errorf("%v, the upstream was asked %d times", answers, u.asked.Load())
	}
}

// When all upstreams are dead, clients get old entries if that is allowed, else SERVFAIL.
func TestDeadUpstreams(t *testing.T) {
	for _, stale := range []string{"", "serve_stale", "serve_stale 1h verify 100ms", "serve_stale rfc8767"} {
		a, b := newUpstream(t, 0), newUpstream(t, 0)
		s := serve(t, ".:0 {\nbind 127.0.0.1\nbothlanes\ncache 1 {\nsuccess 1000 1 0\n"+stale+"\n}\nforward . "+a.addr+" "+b.addr+"\n}")
		m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		s.ask(m, 0)
		a.end()
		b.end()
		time.Sleep(1100 * time.Millisecond)
		for id := range uint16(4) {
			r := s.ask(m, id)
			if r == nil {
				continue
			}
			if kept := r.Rcode == 0 && len(r.Answer) == 1; kept != (stale != "") || !kept && r.Rcode != dns.RcodeServerFailure {
				t.Errorf("%q, id %d: got %v", stale, id, r)
			}
		}
	}
}
