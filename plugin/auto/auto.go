// Package auto serves all zone files of folders, those that come and go, too.
//
//	folder ──files──▶ origin: path, ... ──look──▶ Zones: file.Zone by origin ──▶ index, swapped by one pointer
//	   ▲                                             ▲ new ones are added, changed ones read again, others removed
//	   └── a goroutine for each folder looks at it ──┘
//
//	query ──Auto──longest zone──▶ file.Link ──▶ reply
//
// Which files are zones is this package's matter; reading and answering are package file's. Queries never wait for a look.
// Any number of goroutines may use an Auto. Start at Auto.ServeDNS and folder.look.
package auto

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
)

var alog = log.NewWithPlugin("auto")

// Auto is the plugin.
type Auto struct {
	Next plugin.Handler
	*Zones
	Fall fall.F

	folders []*folder
	friends *friends
}

// Name implements plugin.Handler.
func (a Auto) Name() string { return "auto" }

// ServeDNS implements plugin.Handler.
func (a Auto) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	defer adapter.Free()
	z, known := a.find(&adapter.Query)
	return a.link().ServeDNS(ctx, adapter, z, known, w, r)
}

// ServeWire implements plugin.WireHandler.
func (a Auto) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	z, known := a.find(q)
	return a.link().ServeWire(ctx, z, known, w, q)
}

// WireSelf implements plugin.WireHandler.
func (a Auto) WireSelf() plugin.Handler { return a }

// Large implements readahead.Table.
func (a Auto) Large() bool {
	x := a.index.Load()
	return x != nil && x.Large()
}

// ReadAhead implements readahead.Table.
func (a Auto) ReadAhead(q *wire.Query, left int, found any) any {
	return a.index.Load().ReadAhead(q, left, found)
}

func (a *Auto) link() file.Link { return file.Link{Name: "auto", Next: a.Next, Fall: a.Fall} }

// Transfer implements transfer.Transferer.
func (a Auto) Transfer(name string, serial uint32) (<-chan []dns.RR, error) {
	if z := a.Zones.Zones(name); z != nil {
		return z.Transfer(serial)
	}
	return nil, transfer.ErrNotAuthoritative
}

// Version implements transfer.Source.
func (a Auto) Version(name string) (*zone.Zone, error) {
	if z := a.Zones.Zones(name); z != nil {
		return z.Sendable()
	}
	return nil, transfer.ErrNotAuthoritative
}
