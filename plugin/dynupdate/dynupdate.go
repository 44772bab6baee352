package dynupdate

import (
	"context"
	"sync"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
)

const pluginName = "dynupdate"

var logger = log.NewWithPlugin(pluginName)

// DynUpdate is the plugin, for one zone.
type DynUpdate struct {
	Next plugin.Handler
	// Zone is fully qualified and in lower case.
	Zone string
	// Xfer is the transfer plugin of the server block, nil if there is none.
	Xfer *transfer.Transfer

	settings
	store *store
	index *file.Index // of all zones of the block's directives, nil if there is but one

	followed []*store // whose addresses make PTR records here

	told   talk // what is logged
	notify notifier

	leave sync.Once // the store
}

// Name implements plugin.Handler.
func (d *DynUpdate) Name() string { return pluginName }

// ServeDNS implements plugin.Handler.
func (d *DynUpdate) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode == dns.OpcodeUpdate {
		return d.serveUpdate(ctx, w, r)
	}
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, plugin.Error(pluginName, err)
	}
	defer adapter.Free()
	z, known := d.find(&adapter.Query)
	return d.link().ServeDNS(ctx, adapter, z, known, w, r)
}

// ServeWire implements plugin.WireHandler.
func (d *DynUpdate) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	z, known := d.find(q)
	return d.link().ServeWire(ctx, z, known, w, q)
}

// WireSelf implements plugin.WireHandler.
func (d *DynUpdate) WireSelf() plugin.Handler { return d }

// Large implements readahead.Table.
func (d *DynUpdate) Large() bool { return d.store != nil && d.store.served.Large() }

// ReadAhead implements readahead.Table.
func (d *DynUpdate) ReadAhead(q *wire.Query, left int, found any) any {
	if z, _ := d.find(q); z != nil {
		z.ReadAhead(q, left)
	}
	return nil
}

func (d *DynUpdate) link() file.Link { return file.Link{Name: pluginName, Next: d.Next} }

// find tells whether a query is for the zone. Of several zones of the block, it is for the one with the longest name.
func (d *DynUpdate) find(q *wire.Query) (z *file.Zone, known bool) {
	switch {
	case d.store == nil:
		return nil, plugin.Zones{d.Zone}.Matches(wire.Text(q.Lower())) != ""
	case !wire.Below(q.Lower(), d.origin):
		return nil, false
	case d.index != nil:
		if z, _ := d.index.Find(q); z != d.store.served {
			return nil, false
		}
	}
	return d.store.served, true
}

// CacheBypassZones implements cache.ZoneBypasser: what was changed is seen by every query that comes later.
func (d *DynUpdate) CacheBypassZones() []string { return []string{d.Zone} }

// Ready implements ready.Readiness.
func (d *DynUpdate) Ready() bool { return d.store == nil || d.store.healthy() }

// Freeze has the zone's updates refused from now on, until it is called with false: for who copies the zone, or looks for a
// mistake. It holds for all server blocks with the same database, and until the last of them ends.
func (d *DynUpdate) Freeze(on bool) {
	if d.store != nil {
		d.store.freeze(on)
	}
}

// Transfer implements transfer.Transferer.
func (d *DynUpdate) Transfer(name string, serial uint32) (<-chan []dns.RR, error) {
	if name != d.Zone || d.store == nil {
		return nil, transfer.ErrNotAuthoritative
	}
	return d.store.served.Transfer(serial)
}

// Version implements transfer.Source.
func (d *DynUpdate) Version(name string) (*zone.Zone, error) {
	if name != d.Zone || d.store == nil {
		return nil, transfer.ErrNotAuthoritative
	}
	return d.store.served.Sendable()
}

// Since implements transfer.Historian.
func (d *DynUpdate) Since(name string, serial uint32, v *zone.Zone) []*zone.Delta {
	return d.store.since(serial, v)
}
