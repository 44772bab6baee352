// Package file serves zones from master files (RFC 1035 §5).
//
//	setup ──▶ Zone: a name, its file ──Load──▶ zone.Zone, immutable, in the Zone's store
//	             ▲                                   ▲ swapped by one pointer; who must know is told (OnReplace)
//	             └── watcher: looks at the files ────┘
//
//	query ──File──longest zone──▶ Zone ──▶ Link: zone.Answerer, aliases that lead out, fallthrough ──▶ reply
//
// What a zone holds and how it answers is package zone's; this package knows the files, when
// they are read again, and which zone a query is for. Queries never wait for a reload.
//
// For other plugins and programs: a Zone is also put together record by record (NewZone, Insert, Apex, the embedded
// tree.Tree, Parse); porch.go and compile.go make that an immutable zone when it is asked. A plugin that has its zones from
// elsewhere publishes them with Zone.Replace, and answers from them with a Link of its own, as auto does.
//
// Zones are asked by any number of goroutines; one goroutine at a time loads or replaces a zone.
// Start at File.ServeDNS.
package file

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
)

var flog = log.NewWithPlugin("file")

type (
	// File is the plugin: it answers for its zones and passes all else on.
	File struct {
		Next plugin.Handler
		Zones
		Fall fall.F

		// TransferInFunc is how zones are fetched by who has secondary zones; File itself does not look at it.
		TransferInFunc

		// Xfer is the transfer plugin of the server block, nil if there is none.
		Xfer *transfer.Transfer

		// ZoneLookupFunc finds a query's zone in place of Zones, if it is set. zone may be nil though it is found.
		ZoneLookupFunc

		index   *Index
		leading *leading
	}

	// Zones is zones by their names, fully qualified and in lower case.
	Zones struct {
		Z     map[string]*Zone
		Names []string
	}

	// ZoneLookupFunc finds the zone for a name in lower case; ok tells whether there is one, even if it is not there yet.
	ZoneLookupFunc func(qname string) (zone string, z *Zone, ok bool)
)

// Name implements plugin.Handler.
func (f File) Name() string { return "file" }

// ServeDNS implements plugin.Handler.
func (f File) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	defer adapter.Free()
	z, known := f.find(&adapter.Query)
	return f.link().ServeDNS(ctx, adapter, z, known, w, r)
}

// ServeWire implements plugin.WireHandler.
func (f File) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	z, known := f.find(q)
	return f.link().ServeWire(ctx, z, known, w, q)
}

// WireSelf implements plugin.WireHandler.
func (f File) WireSelf() plugin.Handler { return f }

// Prompt implements plugin.Prompt: where an alias leads out of a zone is looked up by way of the server, which may take time.
func (f File) Prompt() bool { return f.ZoneLookupFunc == nil && f.leading != nil && f.leading.none() }

func (f *File) link() Link { return Link{Name: "file", Next: f.Next, Fall: f.Fall} }

// find is the zone that a query is for. A zone may be known without there being one.
func (f *File) find(q *wire.Query) (z *Zone, known bool) {
	switch {
	case f.ZoneLookupFunc != nil:
		_, z, known = f.ZoneLookupFunc(wire.Text(q.Lower()))
		return z, known
	case f.index != nil:
		return f.index.Find(q)
	}
	// A File that was put together by hand, and may be changed between queries.
	name := plugin.Zones(f.Zones.Names).Matches(wire.Text(q.Lower()))
	return f.Zones.Z[name], name != ""
}
