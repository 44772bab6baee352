package mirror

import (
	"context"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// Front is what a plugin shows of its Mirror: the plugin embeds it, and adds its name and WireSelf. Set comes before all else.
type Front struct{ mirror *Mirror }

// Set makes m what is shown.
func (f *Front) Set(m *Mirror) { f.mirror = m }

// Run reads all zones, and goes on doing so until ctx ends. An error is one of the first time.
func (f *Front) Run(ctx context.Context) error { return f.mirror.Run(ctx) }

// Ready reports whether all zones have been read. It implements ready.Readiness.
func (f *Front) Ready() bool { return f.mirror.Ready() }

// ServeDNS answers for names in the zones, and passes other queries on.
func (f *Front) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return f.mirror.ServeDNS(ctx, w, r)
}

// ServeWire does the same.
func (f *Front) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return f.mirror.ServeWire(ctx, w, q)
}

// Transfer implements transfer.Transferer.
func (f *Front) Transfer(zone string, serial uint32) (<-chan []dns.RR, error) {
	return f.mirror.Transfer(zone, serial)
}

// Version implements transfer.Source.
func (f *Front) Version(name string) (*zone.Zone, error) { return f.mirror.Version(name) }

// ZoneStatus implements status.Zones.
func (f *Front) ZoneStatus() []status.Zone { return f.mirror.ZoneStatus() }

// Install puts the plugin into the chain by link. At the instance's end, stop ends the context that Run was given.
func (f *Front) Install(c *caddy.Controller, link plugin.Plugin, stop context.CancelFunc) {
	cfg := dnsserver.GetConfig(c)
	cfg.AddPlugin(link)
	c.OnStartup(func() error {
		if x, ok := cfg.Handler("transfer").(*transfer.Transfer); ok {
			return f.mirror.announce(x, time.Now())
		}
		return nil
	})
	dnsserver.OnEnd(c, func() error {
		stop()
		f.mirror.End()
		return nil
	})
}
