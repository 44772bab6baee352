package thirdparty

import (
	"context"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/forward"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// detour runs a forward.New() of its own for some names, by calling it.
type detour struct {
	*forward.Forward
	Next plugin.Handler
}

func init() {
	add("detour", "file", func(c *caddy.Controller) error {
		d := &detour{Forward: forward.New()}
		for c.Next() {
			for _, addr := range c.RemainingArgs() {
				d.SetProxy(proxy.NewProxy("detour", addr, transport.DNS))
			}
		}
		d.SetProxyOptions(proxy.Options{PreferUDP: true, HCRecursionDesired: true, HCDomain: "."})
		c.OnStartup(d.OnStartup)
		c.OnShutdown(d.OnShutdown)
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			d.Next = next
			return d
		})
		return nil
	})
	add("footnote", "file", func(c *caddy.Controller) error {
		z, err := file.Parse(strings.NewReader(footnoteZone), "example.org.", "footnotes", 0)
		if err != nil {
			return plugin.Error("footnote", err)
		}
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			return footnote{file.File{Next: next, Zones: file.Zones{Z: map[string]*file.Zone{"example.org.": z}, Names: []string{"example.org."}}}}
		})
		return nil
	})
}

func (d *detour) Name() string { return "detour" }

func (d *detour) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if !strings.HasPrefix(r.Question[0].Name, "far.") {
		return plugin.NextOrFailure(d.Name(), d.Next, ctx, w, r)
	}
	if len(d.List()) != 1 {
		return dns.RcodeServerFailure, nil
	}
	return d.Forward.ServeDNS(ctx, w, r)
}

// An embedded forward serves in no lane by itself: what overrides it decides.
func TestDetour(t *testing.T) {
	up := answering(t, "192.0.2.1").Addr
	inBothLanes(t, block("detour "+up+"\nalmanac {\nhost www.example.org 192.0.2.2\nfallthrough\n}"), func(t *testing.T, s *server) {
		for range 3 {
			s.expect("www.example.org.", dns.TypeA, "NOERROR A 192.0.2.2")
			s.expect("far.example.org.", dns.TypeA, "NOERROR A 192.0.2.1")
			s.expect("near.example.org.", dns.TypeA, "SERVFAIL")
		}
	})
}

const footnoteZone = `$ORIGIN example.org.
@ 60 IN SOA ns mail 1 2 3 4 5
@ 60 IN NS ns
ns 60 IN A 192.0.2.1
www 60 IN A 192.0.2.2
`

// footnote is file, by value, with a ServeDNS of its own: it adds to what file replies.
type footnote struct{ file.File }

type footnoteWriter struct{ dns.ResponseWriter }

func (footnote) Name() string { return "footnote" }

func (f footnote) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return f.File.ServeDNS(ctx, footnoteWriter{w}, r)
}

func (w footnoteWriter) WriteMsg(m *dns.Msg) error {
	m.Extra = append(m.Extra, test.TXT("note. 0 IN TXT note"))
	return w.ResponseWriter.WriteMsg(m)
}

func TestFootnote(t *testing.T) {
	inBothLanes(t, block("footnote"), func(t *testing.T, s *server) {
		for range 3 {
			s.expect("www.example.org.", dns.TypeA, "NOERROR A 192.0.2.2 ns NS ns.example.org. extra TXT \"note\"")
			s.expect("no.example.org.", dns.TypeA, "NXDOMAIN ns SOA ns.example.org. mail.example.org. 1 2 3 4 5 extra TXT \"note\"")
		}
	})
}
