package mirrortest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Served checks what a server answers over UDP, with the wire lane and without it, that has the plugins of cfg, as
// their setup functions left it. Cases are as for Answers; onWire is those that the wire lane answers. In the same
// server there is the zone example.net, where each name has the address 192.0.2.99, and dyn.example.org, where each has
// 192.0.2.42.
func Served(t *testing.T, cfg *dnsserver.Config, cases map[string]string, onWire []string) {
	t.Helper()
	old := dnsserver.WireLane
	defer func() { dnsserver.WireLane = old }()
	plugins := slices.Clone(cfg.Plugin)
	for _, dnsserver.WireLane = range []bool{true, false} {
		spy := new(spy)
		cfg.Plugin = append([]plugin.Plugin{func(next plugin.Handler) plugin.Handler { return &watching{spy, next} }}, plugins...)
		addr, stop := serve(t, cfg, block("example.net.", "192.0.2.99"), block("dyn.example.org.", "192.0.2.42"))
		for question, want := range cases {
			spy.done.Store(0)
			if got := exchange(addr, question); got != want {
				t.Errorf("%s, wire lane %t: %s, want %s", question, dnsserver.WireLane, got, want)
			}
			if lane := spy.done.Load() > 0; lane != (dnsserver.WireLane && slices.Contains(onWire, question)) {
				t.Errorf("%s, wire lane %t: answered there: %t", question, dnsserver.WireLane, lane)
			}
		}
		stop() // the next server makes the chain anew
	}
}

// block is a server block for a zone in which each name has an address.
func block(zone, addr string) *dnsserver.Config {
	cfg := new(dnsserver.Config)
	cfg.Zone = zone
	cfg.AddPlugin(func(plugin.Handler) plugin.Handler {
		return plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			m := new(dns.Msg).SetReply(r)
			if q := r.Question[0]; q.Qtype == dns.TypeA {
				m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.ParseIP(addr)}}
			}
			return dns.RcodeSuccess, w.WriteMsg(m)
		})
	})
	return cfg
}

// serve runs a server until stop is called. The first block has all names that the others have not.
func serve(t *testing.T, blocks ...*dnsserver.Config) (addr string, stop func()) {
	t.Helper()
	blocks[0].Zone = "."
	s, err := dnsserver.NewServer("dns://127.0.0.1:0", blocks)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { s.ServePacket(conn) })
	return conn.LocalAddr().String(), func() {
		s.Stop()
		done.Wait()
	}
}

// exchange is the answer to a question, as Answers has it.
func exchange(addr, question string) string {
	name, typ, _ := strings.Cut(question, " ")
	c := dns.Client{Timeout: 5 * time.Second}
	m, _, err := c.Exchange(new(dns.Msg).SetQuestion(name, dns.StringToType[typ]), addr)
	if err != nil {
		return fmt.Sprint(err)
	}
	return answer(m)
}

// spy counts what the wire lane answers.
type spy struct{ done atomic.Int64 }

type watching struct {
	*spy
	next plugin.Handler
}

func (w *watching) Name() string             { return "watching" }
func (w *watching) WireSelf() plugin.Handler { return w }

func (w *watching) ServeDNS(ctx context.Context, rw dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(w.Name(), w.next, ctx, rw, r)
}

func (w *watching) ServeWire(ctx context.Context, reply *wire.Reply, q *wire.Query) wire.Outcome {
	out := plugin.NextWire(w.Name(), w.next, ctx, reply, q)
	if out == wire.Done {
		w.done.Add(1)
	}
	return out
}
