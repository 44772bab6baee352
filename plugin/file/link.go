package file

import (
	"context"
	"sync"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Link is a plugin's place in the chain, for plugins that answer from Zones. Both lanes ask the same decision of package
// zone; the plugin finds the query's zone.
type Link struct {
	Name string // of the plugin
	Next plugin.Handler
	Fall fall.F // below which names that do not exist are passed on
}

// answerers holds what answering needs; it is some kilobytes.
var answerers = sync.Pool{New: func() any { return new(zone.Answerer) }}

// free gives an Answerer back.
func free(a *zone.Answerer) {
	a.Release()
	answerers.Put(a)
}

// dropped is the lines about notifications for zones that have no primary.
var dropped log.Few

// ServeDNS answers the query of adapter, which was made of w and r, from z. If the zone is not known, the query is passed on; if
// it is known, but z is nil or empty, the answer is SERVFAIL.
func (l Link) ServeDNS(ctx context.Context, adapter *plugin.WireAdapter, z *Zone, known bool, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if !known {
		if l.Next == nil {
			return dns.RcodeRefused, nil
		}
		return plugin.NextOrFailure(l.Name, l.Next, ctx, w, r)
	}
	if r.Opcode == dns.OpcodeUpdate { // which is not for a zone that is read from elsewhere
		return dns.RcodeRefused, nil
	}
	if r.Opcode == dns.OpcodeNotify && z != nil {
		state := request.Request{Req: r, W: w}
		if dropped.May() {
			flog.Infof("Dropping notify from %s for %s", state.IP(), z.origin)
		}
		return dns.RcodeSuccess, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNotAuth))
	}
	version, done := fit(z, &adapter.Reply, &adapter.Query)
	if done {
		return adapter.Write()
	}
	if adapter.Query.Type() == dns.TypeANY && plugin.OverQUIC(ctx) {
		adapter.Query.Peer.Limit = wire.MaxMessage
	}
	a := answerers.Get().(*zone.Answerer)
	defer free(a)
	result := a.Answer(version, &adapter.Reply, &adapter.Query)
	if result == zone.External {
		result = z.follow(ctx, a, &adapter.Reply, adapter.Query.Type(), request.Request{Req: r, W: w})
	}
	if l.passesOn(result, &adapter.Reply, &adapter.Query) {
		return plugin.NextOrFailure(l.Name, l.Next, ctx, w, r)
	}
	if wildcard := a.Wildcard(); wildcard != nil {
		text := wire.Text(wildcard)
		metadata.SetValueFunc(ctx, "zone/wildcard", func() string { return text })
	}
	decide(result, &adapter.Reply)
	return adapter.Write()
}

// ServeWire is ServeDNS for the wire lane.
func (l Link) ServeWire(ctx context.Context, z *Zone, known bool, w *wire.Reply, q *wire.Query) wire.Outcome {
	if !known {
		if l.Next == nil {
			w.Fail(dns.RcodeRefused, nil)
			return wire.Done
		}
		return plugin.NextWire(l.Name, l.Next, ctx, w, q)
	}
	version, done := fit(z, w, q)
	if done {
		return wire.Done
	}
	a := answerers.Get().(*zone.Answerer)
	result := a.Answer(version, w, q)
	free(a)
	if result == zone.External {
		return wire.Unpack
	}
	if l.passesOn(result, w, q) {
		return plugin.NextWire(l.Name, l.Next, ctx, w, q)
	}
	decide(result, w)
	w.SetWriter(l.Name)
	return wire.Done
}

// fit is the version of the zone that a query is answered from, and whether it is decided without one: there is
// none, its data has expired, or a transfer is asked for, which the transfer plugin would have taken.
func fit(z *Zone, w *wire.Reply, q *wire.Query) (version *zone.Zone, done bool) {
	switch {
	case z == nil:
		w.Fail(dns.RcodeServerFailure, nil)
	case q.Type() == wire.TypeAXFR || q.Type() == wire.TypeIXFR:
		w.Fail(dns.RcodeRefused, nil)
	default:
		if version, expired := z.version(); version != nil && !expired {
			return version, false
		}
		w.Fail(dns.RcodeServerFailure, nil)
	}
	return nil, true
}

// passesOn reports whether a name that does not exist here is one for the next plugin.
func (l *Link) passesOn(r zone.Result, w *wire.Reply, q *wire.Query) bool {
	if r != zone.NXDomain && r != zone.Empty || w.Count(wire.Answer) > 0 || len(l.Fall.Zones) == 0 {
		return false
	}
	return l.Fall.Zones[0] == "." || l.Fall.Through(wire.Text(q.Lower()))
}

// decide turns a failure without data into one that the server answers; with the aliases that led
// to it, it is answered as it stands (RFC 6604).
func decide(r zone.Result, w *wire.Reply) {
	if r == zone.Broken && w.Count(wire.Answer) == 0 {
		w.Fail(dns.RcodeServerFailure, nil)
	}
}
