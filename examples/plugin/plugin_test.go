// Package example runs the three versions of the example plugin in a whole server.
package example

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/examples/plugin/notype1"
	_ "github.com/coredns/coredns/examples/plugin/notype2"
	_ "github.com/coredns/coredns/examples/plugin/notype3"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/wire"
	server "github.com/coredns/coredns/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
)

// versions of the plugin, and whether the server keeps their queries in the wire lane.
var versions = map[string]bool{"notype1": false, "notype2": true, "notype3": true}

// spy stands above all plugins and counts the queries that were answered in the wire lane.
type spy struct{ plugin.Handler }

var onWire atomic.Int64

func (s *spy) WireSelf() plugin.Handler { return s }

func (s *spy) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	out := plugin.NextWire("spy", s.Handler, ctx, w, q)
	if out == wire.Done {
		onWire.Add(1)
	}
	return out
}

// init does what a line in plugin.cfg does: it gives the directives their place in the chain.
func init() {
	dnsserver.Directives = slices.Insert(dnsserver.Directives, 0, "spy", "notype1", "notype2", "notype3")
	plugin.Register("spy", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return &spy{next} })
		return nil
	})
}

// serve starts a server that lasts as long as the test, in the wire lane or without it.
func serve(t *testing.T, lines string, wireLane bool) map[string]string {
	t.Helper()
	dnsserver.WireLane = wireLane
	t.Cleanup(func() { dnsserver.WireLane = true })
	i, udp, tcp, err := server.CoreDNSServerAndPorts(".:0 {\nbind 127.0.0.1\nspy\n" + lines + "\nwhoami\n}")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.CoreDNSServerStop(i) })
	return map[string]string{"udp": loopback.To(udp), "tcp": loopback.To(tcp)}
}

func ask(t *testing.T, network, addr string, typ uint16) *dns.Msg {
	t.Helper()
	c := &dns.Client{Net: network, Timeout: 5 * time.Second}
	m, _, err := c.Exchange(new(dns.Msg).SetQuestion("www.example.org.", typ), addr)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// deniedBy is what all servers have counted for a version.
func deniedBy(t *testing.T, version string) (n float64) {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "coredns_"+version+"_denied_total" {
			for _, m := range f.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// Each version answers, passes on and counts the same, over UDP and TCP, in both lanes.
func TestVersions(t *testing.T) {
	for _, tc := range []struct {
		option string
		typ    uint16
		rcode  int
		whoami bool // the query was passed on, and whoami has put records into the additional section
		counts float64
	}{
		{"", dns.TypeAAAA, dns.RcodeSuccess, false, 1},
		{"", dns.TypeA, dns.RcodeSuccess, true, 0},
		{" {\nrefuse\n}", dns.TypeHTTPS, dns.RcodeRefused, false, 1},
		{" {\nrefuse\n}", dns.TypeA, dns.RcodeSuccess, true, 0},
	} {
		for version, inWire := range versions {
			for _, wireLane := range []bool{true, false} {
				for network, addr := range serve(t, version+" AAAA https"+tc.option, wireLane) {
					before := deniedBy(t, version)
					onWire.Store(0)
					m := ask(t, network, addr, tc.typ)
					if m.Rcode != tc.rcode || (len(m.Extra) > 0) != tc.whoami || len(m.Answer) > 0 {
						t.Errorf("%s, %s, wire lane %v: got %v", version, network, wireLane, m)
					}
					if n := deniedBy(t, version) - before; n != tc.counts {
						t.Errorf("%s, %s, wire lane %v: %v queries were counted, not %v", version, network, wireLane, n, tc.counts)
					}
					if n := onWire.Load(); (n == 1) != (inWire && wireLane) {
						t.Errorf("%s, %s, wire lane %v: %d queries stayed in the wire lane", version, network, wireLane, n)
					}
				}
			}
		}
	}
}

func TestMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"":                     "Wrong argument count",
		" BANANA":              "unknown type 'BANANA'",
		" AAAA {\nrefused\n}":  "did you mean 'refuse'",
		" AAAA {\nrefuse 1\n}": "Wrong argument count",
	} {
		for version := range versions {
			i, err := server.CoreDNSServer(".:0 {\n" + version + line + "\n}")
			if err == nil {
				server.CoreDNSServerStop(i)
			}
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), version) {
				t.Errorf("%s%s: got %v", version, line, err)
			}
		}
	}
}
