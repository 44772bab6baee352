package thirdparty

import (
	"context"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// gate is a Viewer: its block takes the queries for names that begin with a word.
type gate struct {
	Next plugin.Handler
	word string
}

func init() {
	add("gate", "errors", func(c *caddy.Controller) error {
		g := &gate{}
		for c.Next() {
			if !c.Args(&g.word) {
				return plugin.Error("gate", c.ArgErr())
			}
		}
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			g.Next = next
			return g
		})
		return nil
	})
	add("whichview", "file", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return plugin.HandlerFunc(tellView) })
		return nil
	})
}

var _ dnsserver.Viewer = (*gate)(nil)

func (g *gate) Name() string     { return "gate" }
func (g *gate) ViewName() string { return "view-" + g.word }

func (g *gate) Filter(_ context.Context, req *request.Request) bool {
	return strings.HasPrefix(req.Name(), g.word) && req.IP() == "127.0.0.1"
}

func (g *gate) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(g.Name(), g.Next, ctx, w, r)
}

// tellView replies with the view's name, as metrics label it and as the context has it.
func tellView(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	inContext, _ := ctx.Value(dnsserver.ViewKey{}).(string)
	m := new(dns.Msg).SetReply(r)
	m.Answer = []dns.RR{&dns.TXT{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{metrics.WithView(ctx), inContext}}}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// A filter of others knows messages only, so there is no witness: such blocks are served in the message lane.
func TestViews(t *testing.T) {
	b := func(zone, lines string) string { return zone + " {\nbind 127.0.0.1\n" + lines + "\nwhichview\n}\n" }
	addr := func(zone string) string { return zone + ":0" }
	inBothLanes(t, b(addr("example.org"), "gate a")+b(addr("example.org"), "gate b")+b(addr("example.org"), ""), func(t *testing.T, s *server) {
		s.expect("a.example.org.", dns.TypeTXT, `NOERROR TXT "view-a" "view-a"`)
		s.expect("B.example.org.", dns.TypeTXT, `NOERROR TXT "view-b" "view-b"`)
		s.expect("c.example.org.", dns.TypeTXT, `NOERROR TXT "" ""`)
		s.expect("a.example.net.", dns.TypeTXT, "REFUSED")
	})
}
