// Package hosts answers from hosts(5) files and lines of the same form in the Corefile.
//
//	file ──read──▶ pages ──index──▶ table ─┐
//	                                       ├─▶ Hosts.decide ──▶ reply
//	inline ────────────────────────▶ table ┘
//
// A table never changes; when the file was changed, a new one takes its place, which shares the pages that are
// in both. Readers take no lock. Start at Hosts.ServeDNS.
package hosts

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Hosts is the plugin.
type Hosts struct {
	Next plugin.Handler
	*Hostsfile
	Fall fall.F

	fallUnsupported bool
}

// Name implements plugin.Handler.
func (h Hosts) Name() string { return "hosts" }

// ServeDNS implements plugin.Handler.
func (h Hosts) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode == dns.OpcodeUpdate { // is for who serves the zone from its own data
		return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
	}
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
	}
	defer adapter.Free()
	if !h.decide(&adapter.Reply, &adapter.Query) {
		return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
	}
	return adapter.Write()
}

// ServeWire implements plugin.WireHandler.
func (h Hosts) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if !h.decide(w, q) {
		return plugin.NextWire(h.Name(), h.Next, ctx, w, q)
	}
	w.SetWriter(h.Name())
	return wire.Done
}

// WireSelf implements plugin.WireHandler.
func (h Hosts) WireSelf() plugin.Handler { return h }

// Prompt implements plugin.Prompt.
func (h Hosts) Prompt() bool { return true }

// decide answers q into w, or reports that it is one for the next plugin.
func (h *Hosts) decide(w *wire.Reply, q *wire.Query) bool {
	h.prepare()
	if q.Type() == wire.TypePTR {
		return h.reverse(w, q) // whatever its zone, as addresses are in no zone of the names
	}
	if !h.inOrigins(q.Lower()) {
		return false
	}
	w.Begin(q)
	w.SetFlag(wire.FlagAA, true)
	switch q.Type() {
	case wire.TypeA, wire.TypeAAAA:
		h.addresses(w, q)
	default:
		if h.fallUnsupported && h.through(q) {
			return false
		}
	}
	if w.Count(wire.Answer) > 0 || h.exists(q) {
		return true // NODATA is an empty answer, as there is no SOA record
	}
	if h.through(q) {
		return false
	}
	w.Fail(wire.ServFail, nil) // nor is there one for NXDOMAIN
	return true
}

func (h *Hosts) through(q *wire.Query) bool {
	return len(h.Fall.Zones) > 0 && h.Fall.Through(wire.Text(q.Lower()))
}

// addresses answers with the addresses that file and inline lines have.
func (h *Hosts) addresses(w *wire.Reply, q *wire.Query) {
	var f found
	for i, t := range h.tables() {
		for ok := t.find(&f, q.Lower(), q.Hash(), q.Type()); ok; ok = f.next() {
			if i == 0 || !has(w, f.addr().AsSlice()) {
				w.Addr(wire.Answer, q.Lower(), h.ttl, f.addr())
			}
		}
	}
}

// has reports whether an address is in the answer already.
func has(w *wire.Reply, addr []byte) bool {
	for i := range w.Count(wire.Answer) {
		if string(w.RData(i)) == string(addr) {
			return true
		}
	}
	return false
}

// exists reports whether the name has addresses of a family that was not asked for.
func (h *Hosts) exists(q *wire.Query) bool {
	var f found
	for _, t := range h.tables() {
		for _, typ := range [...]uint16{wire.TypeA, wire.TypeAAAA} {
			if typ != q.Type() && t.find(&f, q.Lower(), q.Hash(), typ) {
				return true
			}
		}
	}
	return false
}

// reverse answers with the names of an address, if there are some.
func (h *Hosts) reverse(w *wire.Reply, q *wire.Query) bool {
	addr, ok := parseAddr(dnsutil.ExtractAddressFromReverse(wire.Text(q.Lower())))
	if !ok {
		return false
	}
	w.Begin(q)
	w.SetFlag(wire.FlagAA, true)
	for name := range h.names(addr) {
		w.Target(wire.Answer, q.Lower(), wire.TypePTR, h.ttl, name)
	}
	return w.Count(wire.Answer) > 0
}
