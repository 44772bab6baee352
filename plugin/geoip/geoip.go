// Package geoip tells other plugins where clients are: it offers what a MaxMind database knows of their addresses as metadata.
//
//	client's address, or that of its subnet option ──▶ labels ──read──▶ one lookup ──▶ values
//
// Nothing is looked up before a label is read. The plugin answers no queries; all pass in either lane. Start at GeoIP.Metadata
// and database.go.
package geoip

import (
	"context"
	"net/netip"

	"github.com/coredns/coredns/plugin"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "geoip"

var log = clog.NewWithPlugin(pluginName)

// GeoIP offers labels about clients.
type GeoIP struct {
	Next plugin.Handler

	db     *database
	subnet bool // of clients that say where they are (RFC 7871), that counts
}

// Name is the plugin's name.
func (g GeoIP) Name() string { return pluginName }

// Metadata offers the labels of the databases' schemas for the client of state.
func (g GeoIP) Metadata(ctx context.Context, state request.Request) context.Context {
	addr := wire.PeerOf(state.W.RemoteAddr(), nil).Client.Addr().WithZone("")
	if g.subnet {
		if a, ok := subnetOf(state.Req); ok {
			addr = a
		}
	}
	if g.db != nil {
		g.db.offer(ctx, addr)
	}
	return ctx
}

// subnetOf is the address in a query's client subnet option.
func subnetOf(r *dns.Msg) (netip.Addr, bool) {
	opt := r.IsEdns0()
	if opt == nil {
		return netip.Addr{}, false
	}
	for _, o := range opt.Option {
		if s, ok := o.(*dns.EDNS0_SUBNET); ok {
			a, ok := netip.AddrFromSlice(s.Address)
			return a.Unmap(), ok
		}
	}
	return netip.Addr{}, false
}

// ServeDNS passes the query on.
func (g GeoIP) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(g.Name(), g.Next, ctx, w, r)
}

// ServeWire passes the query on.
func (g GeoIP) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return plugin.NextWire(g.Name(), g.Next, ctx, w, q)
}

// WireSelf returns g.
func (g GeoIP) WireSelf() plugin.Handler { return g }
