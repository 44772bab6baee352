package thirdparty

import (
	"context"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// badge provides metadata, and is no part of an answer.
type badge struct{ Next plugin.Handler }

// clerk reads metadata, once the plugins below have answered, and adds it to the reply.
type clerk struct{ Next plugin.Handler }

func init() {
	add("clerk", "template", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return clerk{next} })
		return nil
	})
	add("badge", "forward", func(c *caddy.Controller) error { // below the one who reads
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return badge{next} })
		return nil
	})
}

func (badge) Name() string { return "badge" }

func (b badge) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(b.Name(), b.Next, ctx, w, r)
}

// Metadata is found by its shape.
func (badge) Metadata(ctx context.Context, state request.Request) context.Context {
	metadata.SetValueFunc(ctx, "badge/name", func() string { return state.Name() + " by " + state.Proto() + " from " + state.IP() })
	return ctx
}

func (clerk) Name() string { return "clerk" }

// clerkWriter adds to replies when they are written.
type clerkWriter struct {
	dns.ResponseWriter
	ctx context.Context
}

func (c clerk) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	metadata.SetValueFunc(ctx, "clerk/seen", func() string { return "seen" }) // harmless without the plugin metadata
	return plugin.NextOrFailure(c.Name(), c.Next, ctx, clerkWriter{w, ctx}, r)
}

func (w clerkWriter) WriteMsg(m *dns.Msg) error {
	m = m.Copy()
	for _, label := range []string{"badge/name", "forward/upstream", "clerk/seen", "clerk/none"} {
		value := "-"
		if get := metadata.ValueFunc(w.ctx, label); get != nil {
			value = get()
		}
		m.Extra = append(m.Extra, &dns.TXT{Hdr: dns.RR_Header{Name: "label.", Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{value}})
	}
	return w.ResponseWriter.WriteMsg(m)
}

// answering is an upstream that gives all names one address.
func answering(t *testing.T, addr string) *dnstest.Server {
	t.Helper()
	s := dnstest.NewMultipleServer(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		rr, _ := dns.NewRR(r.Question[0].Name + " 60 IN A " + addr)
		m.Answer = []dns.RR{rr}
		w.WriteMsg(m)
	})
	t.Cleanup(s.Close)
	return s
}

func TestLabels(t *testing.T) {
	up := answering(t, "192.0.2.1").Addr
	inBothLanes(t, block("metadata\nclerk\nbadge\nforward . "+up), func(t *testing.T, s *server) {
		for _, network := range []string{"udp", "tcp"} {
			m := s.exchange(network, new(dns.Msg).SetQuestion("wwW.example.org.", dns.TypeA))
			want := `NOERROR A 192.0.2.1 extra TXT "www.example.org. by ` + network + ` from 127.0.0.1" extra TXT "` + up + `" extra TXT "seen" extra TXT "-"`
			if got := text(m); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
	inBothLanes(t, block("clerk\nbadge\nforward . "+up), func(t *testing.T, s *server) {
		s.expect("www.example.org.", dns.TypeA, `NOERROR A 192.0.2.1 extra TXT "-" extra TXT "-" extra TXT "-" extra TXT "-"`)
	})
}
