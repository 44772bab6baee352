// Package secondary serves zones that it has from their primaries.
//
//	primaries ──SOA, IXFR, AXFR──▶ replica: one zone, one goroutine ──▶ file.Zone ──▶ roster, its index swapped by one pointer
//	    │                              ▲ ▲                                │
//	    └──NOTIFY──▶ ServeDNS ─────────┘ │ timers of the SOA record       ├──▶ transfer: NOTIFY, increments
//	                                                                      └──▶ storage: served at once after a restart
//
//	catalog zones (RFC 9432) ──▶ decide: what is to be added, removed, reset, moved ──▶ roster
//
// How a transfer is read is package fetch's matter, and how queries are answered package file's; this package knows when to
// ask whom for what, and which zones there are. No query waits for a primary.
//
// Any number of goroutines may use a Secondary. Start at Secondary.ServeDNS and replica.run.
package secondary

import (
	"context"
	"net/netip"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/transfer"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

var slog = log.NewWithPlugin("secondary")

// plog is for the lines about single primaries, which CoreDNS 1.14.7 writes in the name of file.
var plog = log.NewWithPlugin("file")

// Secondary is the plugin. Of File it uses Next and Fall. One that the directive did not make has the zones of File,
// and transfers none in.
type Secondary struct {
	file.File

	roster *roster
}

// Name implements plugin.Handler.
func (s Secondary) Name() string { return "secondary" }

// ServeDNS implements plugin.Handler.
func (s Secondary) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if s.roster == nil {
		return s.File.ServeDNS(ctx, w, r)
	}
	if r.Opcode == dns.OpcodeNotify {
		if done, err := s.notified(w, r); done {
			return dns.RcodeSuccess, err
		}
	}
	if r.Opcode == dns.OpcodeUpdate {
		if z := s.roster.replica(dns.CanonicalName(r.Question[0].Name)); z != nil && z.updates != nil {
			code, err := z.updates.Serve(ctx, w, plugin.Packet(ctx))
			if err != nil {
				err = plugin.Error("secondary", err)
			}
			return code, err
		}
	}
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	defer adapter.Free()
	z, known := s.roster.find(&adapter.Query)
	return s.link().ServeDNS(ctx, adapter, z, known, w, r)
}

// ServeWire implements plugin.WireHandler.
func (s Secondary) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if s.roster == nil {
		return s.File.ServeWire(ctx, w, q)
	}
	z, known := s.roster.find(q)
	return s.link().ServeWire(ctx, z, known, w, q)
}

// WireSelf implements plugin.WireHandler.
func (s Secondary) WireSelf() plugin.Handler { return s }

// Large implements readahead.Table.
func (s Secondary) Large() bool {
	if s.roster == nil {
		return s.File.Large()
	}
	return s.roster.index.Load().Large()
}

// ReadAhead implements readahead.Table.
func (s Secondary) ReadAhead(q *wire.Query, left int, found any) any {
	if s.roster == nil {
		return s.File.ReadAhead(q, left, found)
	}
	return s.roster.index.Load().ReadAhead(q, left, found)
}

func (s *Secondary) link() file.Link {
	return file.Link{Name: "secondary", Next: s.Next, Fall: s.Fall}
}

// notified answers a notification (RFC 1996 §3.7) of a zone that we have, and has its replica look at the primaries. One that
// is not from a primary is dropped.
func (s *Secondary) notified(w dns.ResponseWriter, r *dns.Msg) (done bool, err error) {
	state := request.Request{W: w, Req: r}
	z := s.roster.replica(state.Name())
	if z == nil {
		return false, nil
	}
	from, err := netip.ParseAddr(state.IP())
	if err != nil || !z.isPrimary(from) {
		if s.roster.dropped.May() {
			slog.Infof("Dropping notify from %s for %s", state.IP(), z.name())
		}
		return true, nil
	}
	m := new(dns.Msg).SetReply(r)
	m.Authoritative = true
	err = w.WriteMsg(m)
	// Of many at once one is told of: addresses can be forged.
	if z.notify(from) {
		slog.Infof("Notify from %s for %s: checking transfer", state.IP(), z.name())
	}
	return true, err
}

// Transfer implements transfer.Transferer.
func (s Secondary) Transfer(name string, serial uint32) (<-chan []dns.RR, error) {
	if s.roster == nil {
		return s.File.Transfer(name, serial)
	}
	if z := s.roster.replica(name); z != nil {
		return z.zone.Transfer(serial)
	}
	return nil, transfer.ErrNotAuthoritative
}

// Version implements transfer.Source.
func (s Secondary) Version(name string) (*zone.Zone, error) {
	if s.roster == nil {
		return s.File.Version(name)
	}
	if z := s.roster.replica(name); z != nil {
		return z.zone.Sendable()
	}
	return nil, transfer.ErrNotAuthoritative
}
