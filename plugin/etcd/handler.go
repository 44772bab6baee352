package etcd

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// ServeDNS answers for names in the zones, and passes other queries on.
func (e *Etcd) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode == dns.OpcodeUpdate { // is for who serves the zone from its own data
		return plugin.NextOrFailure(e.Name(), e.Next, ctx, w, r)
	}
	state := request.Request{W: w, Req: r}
	zone := plugin.Zones(e.Zones).Matches(state.Name())
	if zone == "" {
		return plugin.NextOrFailure(e.Name(), e.Next, ctx, w, r)
	}
	state.Zone = zone
	ctx, done := withTurn(ctx)
	defer done()
	opt := plugin.Options{}
	a, err := e.answer(ctx, zone, state, opt)
	switch {
	case err != nil && e.IsNameError(err):
		if e.Fall.Through(state.Name()) {
			return plugin.NextOrFailure(e.Name(), e.Next, ctx, w, r)
		}
		rcode := dns.RcodeNameError
		if state.Name() == zone { // which exists: it has a SOA record
			rcode = dns.RcodeSuccess
		}
		return plugin.BackendError(ctx, e, zone, rcode, state, nil, opt)
	case err != nil:
		return plugin.BackendError(ctx, e, zone, dns.RcodeServerFailure, state, err, opt)
	case len(a.records) == 0:
		return plugin.BackendError(ctx, e, zone, dns.RcodeSuccess, state, nil, opt)
	}
	m := new(dns.Msg).SetReply(r)
	m.Authoritative, m.Truncated = true, a.truncated
	m.Answer, m.Extra = a.records, a.extra
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// answer is the records of a reply.
type answer struct {
	records, extra []dns.RR
	truncated      bool
}

// answer looks the query up.
func (e *Etcd) answer(ctx context.Context, zone string, state request.Request, opt plugin.Options) (a answer, err error) {
	apex := state.Name() == zone
	switch typ := state.QType(); {
	case typ == dns.TypeA:
		a.records, a.truncated, err = plugin.A(ctx, e, zone, state, nil, opt)
	case typ == dns.TypeAAAA:
		a.records, a.truncated, err = plugin.AAAA(ctx, e, zone, state, nil, opt)
	case typ == dns.TypeTXT:
		a.records, a.truncated, err = plugin.TXT(ctx, e, zone, state, nil, opt)
	case typ == dns.TypeCNAME:
		a.records, err = plugin.CNAME(ctx, e, zone, state, opt)
	case typ == dns.TypePTR:
		a.records, err = plugin.PTR(ctx, e, zone, state, opt)
	case typ == dns.TypeMX:
		a.records, a.extra, err = plugin.MX(ctx, e, zone, state, opt)
	case typ == dns.TypeSRV:
		a.records, a.extra, err = plugin.SRV(ctx, e, zone, state, opt)
	case typ == dns.TypeSOA && apex:
		e.seeRevision(ctx, zone)
		a.records, err = plugin.SOA(ctx, e, zone, state, opt)
	case typ == dns.TypeNS && apex:
		a.records, a.extra, err = plugin.NS(ctx, e, zone, state, opt)
	default:
		err = e.exists(ctx, state)
	}
	if typ := state.QType(); e.IsNameError(err) && (typ == dns.TypeCNAME || typ == dns.TypePTR) {
		// These are looked for at the name alone. One that only has services below it exists, too (RFC 8020).
		err = e.exists(ctx, state)
	}
	return a, err
}

// seeRevision has etcd tell its revision, so that who asks for the serial only learns of changes, too. Without an answer the
// last one that was seen is as good as any.
func (e *Etcd) seeRevision(ctx context.Context, zone string) {
	ctx, cancel := context.WithTimeout(ctx, revisionTime)
	defer cancel()
	_ = e.get(ctx, msg.Path(zone, e.PathPrefix), itself, func([]*mvccpb.KeyValue, int) {})
}

// ServeWire passes on queries for other names.
func (e *Etcd) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	e.zonesOnce.Do(func() {
		for _, z := range e.Zones {
			if name, err := wire.LowerName(z); err == nil {
				e.zoneNames.Set(name, struct{}{})
			}
		}
	})
	if _, ok := e.zoneNames.Longest(q.Lower()); ok {
		return wire.Unpack
	}
	return plugin.NextWire(e.Name(), e.Next, ctx, w, q)
}

// WireSelf returns e.
func (e *Etcd) WireSelf() plugin.Handler { return e }
