// Package local answers for names that mean the host itself, so that they never leave it: localhost and the reverse
// names of loopback addresses (RFC 6303, RFC 6761 §6.3).
//
//	name ──place──▶ host (localhost itself, a name below it, localhost.SEARCH.DOMAIN)
//	                apex (of a reverse zone) · loopback (1.0.0.127.in-addr.arpa) · missing · elsewhere ──▶ next plugin
//
// Start at Local.ServeDNS.
package local

import (
	"context"
	"net/netip"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const pluginName = "local"

var logger = log.NewWithPlugin(pluginName)

// LocalhostCount counts queries for localhost with a search domain behind it, and for names below localhost.
var LocalhostCount prometheus.Counter = promauto.NewCounter(prometheus.CounterOpts{
	Namespace: plugin.Namespace, Subsystem: pluginName, Name: "localhost_requests_total",
	Help: "Counter of localhost.<domain> requests.",
})

// Local answers for local names and passes all others on.
type Local struct {
	Next plugin.Handler

	noPrefix bool // localhost with a search domain behind it passes on
}

// Name is the plugin's name.
func (l Local) Name() string { return pluginName }

// ServeDNS answers for local names.
func (l Local) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode == dns.OpcodeUpdate { // is for who serves the zone from its own data
		return plugin.NextOrFailure(l.Name(), l.Next, ctx, w, r)
	}
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return plugin.NextOrFailure(l.Name(), l.Next, ctx, w, r)
	}
	defer adapter.Free()
	if !l.answer(&adapter.Reply, &adapter.Query) {
		return plugin.NextOrFailure(l.Name(), l.Next, ctx, w, r)
	}
	return adapter.Write()
}

// ServeWire answers for local names.
func (l Local) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if !l.answer(w, q) {
		return plugin.NextWire(l.Name(), l.Next, ctx, w, q)
	}
	return wire.Done
}

// WireSelf returns l.
func (l Local) WireSelf() plugin.Handler { return l }

// Prompt implements plugin.Prompt.
func (l Local) Prompt() bool { return true }

// answer answers q, unless its name is no local one.
func (l Local) answer(w *wire.Reply, q *wire.Query) bool {
	if q.Class() != wire.ClassIN {
		return false
	}
	p, zone := l.place(q.Lower())
	if p == elsewhere {
		return false
	}
	w.Begin(q)
	w.SetWriter(pluginName)
	w.SetFlag(wire.FlagAA, true)
	zone = q.Name()[len(q.Name())-len(zone):] // as the client writes it
	if p == host {
		LocalhostCount.Inc()
		if log.D.Value() {
			logger.Debugf("Intercepting localhost query for %q %s, from %s", wire.Text(q.Name()), dns.Type(q.Type()), q.Client.Addr())
		}
	}
	switch {
	case p == missing:
		w.SetRcode(wire.NXDomain)
	case (p == apexHost || p == host) && q.Type() == wire.TypeA:
		w.Addr(wire.Answer, q.Name(), ttl, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	case (p == apexHost || p == host) && q.Type() == wire.TypeAAAA:
		w.Addr(wire.Answer, q.Name(), ttl, netip.IPv6Loopback())
	case (p == apexHost || p == apex) && q.Type() == wire.TypeNS:
		w.Target(wire.Answer, q.Name(), wire.TypeNS, ttl, localhost)
	case (p == apexHost || p == apex) && q.Type() == wire.TypeSOA:
		w.SOA(wire.Answer, zone, ttl, &soa)
	case p == loopback && q.Type() == wire.TypePTR:
		w.Target(wire.Answer, q.Name(), wire.TypePTR, ttl, localhost)
	}
	if w.Count(wire.Answer) == 0 {
		w.SOA(wire.Authority, zone, ttl, &soa)
	}
	return true
}
