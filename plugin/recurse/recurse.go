// Package recurse resolves names from the root: it asks the servers of zones themselves, one after the other, and
// keeps what it learns.
//
//	query ──ServeWire──▶ local.go, special.go  what needs no server
//	                         │
//	                         ▼
//	                      job.go ──▶ iterate.Run: what to do next, pure ──▶ exchange.go ──▶ proxy.Proxy ──▶ servers
//	                         ▲                                                  │
//	                         └──────────── reply, time-out ─────────────────────┘
//	                      answer.go ──▶ client
//
// One job serves all who ask the same; queries of the wire lane are parked on it. Jobs share exchanges: what two of
// them would ask of one zone's servers at one time is asked once. Both lanes ask the same jobs, so a rule is
// written once. What is kept lies in package store. Start at Recurse.ServeWire.
package recurse

import (
	"context"
	"net/netip"
	"strconv"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "recurse"

var logger = log.NewWithPlugin(pluginName)

// Recurse is the handler of one server block.
type Recurse struct {
	Next  plugin.Handler
	zones []string // wire form, lower case
	*resolver
	details bool                          // errors tell which server failed last
	guarded func(string, netip.Addr) bool // addresses that clients do not get for a name; nil is none
	shown   []*shown                      // of forwards of the block, with the option snoop; written at the start
}

// Name is the plugin's name.
func (r *Recurse) Name() string { return pluginName }

// Ready reports whether the root was primed, or ten seconds have passed in which it could have been.
func (r *Recurse) Ready() bool { return r.ready() }

// WireSelf implements plugin.WireHandler.
func (r *Recurse) WireSelf() plugin.Handler { return r }

// ServeWire resolves names in the zones, and passes other queries on. A query that needs servers is parked on a job.
func (r *Recurse) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if !r.covers(q.Lower()) {
		return plugin.NextWire(pluginName, r.Next, ctx, w, q)
	}
	defer w.SetNonAuthoritative(true)
	if r.local(w, q) {
		return wire.Done
	}
	j, _ := q.Awaited().(*job)
	found := unlooked
	if j == nil {
		if r.passes(ctx, q, nil) {
			found = old
		} else if found = r.atOnce(w, q, nil); found == answered {
			return wire.Done
		}
	}
	if j == nil || j.resolver != r.resolver || !j.asks(q) {
		if q.Crowded() {
			return wire.Park // awaiting nothing
		}
		var why string
		if j, why = r.beginFor(q, q.Loop(), nil, found); j == nil {
			r.crowded(w, q, why)
			return wire.Done
		}
	}
	if !j.Over() {
		q.Await(j)
		return wire.Park
	}
	if j.gone {
		if q.Stream() {
			r.crowded(w, q, gaveWay)
			return wire.Done
		}
		q.Await(nil)
		return wire.Park
	}
	r.answer(w, q, j.result)
	r.renew(j)
	return wire.Done
}

// ServeDNS is ServeWire for messages; it waits. A validator's own questions are resolved in all zones: the chain of
// keys that leads to one of these zones begins at the root.
func (r *Recurse) ServeDNS(ctx context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
	a, err := plugin.NewWireAdapter(w, m)
	if err != nil {
		return dns.RcodeServerFailure, plugin.Error(pluginName, err)
	}
	defer a.Free()
	q := &a.Query
	q.SetCrowded(nil, eventloop.PlaceOf(ctx))
	source := advice.Of(ctx)
	if !r.covers(q.Lower()) && !source.Proves() {
		return plugin.NextOrFailure(pluginName, r.Next, ctx, w, m)
	}
	write := func() (int, error) {
		a.Reply.SetNonAuthoritative(true)
		return a.Write()
	}
	if r.local(&a.Reply, q) {
		return write()
	}
	found := unlooked
	switch {
	case source.Again():
	case r.passes(ctx, q, source):
		found = old
	default:
		if found = r.atOnce(&a.Reply, q, source); found == answered {
			tell(ctx, nothingAsked, 0)
			return write()
		}
	}
	j, why := (*job)(nil), "max_queries"
	if source == nil || !source.Purse.Empty() {
		j, why = r.beginFor(q, nil, source, found)
	}
	if j == nil {
		r.crowded(&a.Reply, q, why)
		return write()
	}
	if err := j.wait(ctx); err != nil {
		return dns.RcodeServerFailure, plugin.Error(pluginName, err)
	}
	tell(ctx, j.result, source.Pay(j.Spent()))
	if j.gone {
		r.crowded(&a.Reply, q, gaveWay)
		return write()
	}
	r.answer(&a.Reply, q, j.result)
	r.renew(j)
	return write()
}

// tell tells other plugins what an answer took: so many queries, with those of earlier answers to a validator's question.
func tell(ctx context.Context, res *iterate.Result, queries int) {
	metadata.SetValueFunc(ctx, "recurse/zone", func() string { return zoneText(res.Zone) })
	metadata.SetValueFunc(ctx, "recurse/server", func() string { return serverText(res.Server) })
	metadata.SetValueFunc(ctx, "recurse/queries", func() string { return strconv.Itoa(queries) })
	if res.Queries == 0 {
		plugin.Note(ctx, "no queries")
		return
	}
	plugin.Note(ctx, "%d queries, the last one to %s of %s", res.Queries, serverText(res.Server), zoneText(res.Zone))
}

// nothingAsked is the Result of an answer that took no query.
var nothingAsked = &iterate.Result{}

// zoneText is the zone whose servers were asked last, empty for none.
func zoneText(zone string) string {
	if zone == "" {
		return ""
	}
	return rrset.Text(zone)
}

// serverText is the address of the server that was asked last, empty for none.
func serverText(a netip.AddrPort) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// renew has what a job found in the stores fetched again if its end is near.
func (r *resolver) renew(j *job) {
	if r.prefetch && j.result.Due && j.key.subnet == "" {
		r.again(j.key)
	}
}

// covers reports whether a lower-case name is in the zones.
func (r *Recurse) covers(name []byte) bool {
	for _, z := range r.zones {
		if wire.Below(name, []byte(z)) {
			return true
		}
	}
	return false
}

// crowded is the reply when a limit of what waits is reached: none over UDP.
func (r *Recurse) crowded(w *wire.Reply, q *wire.Query, limit string) {
	r.counts.limit(limit)
	if q.Stream() {
		w.Fail(wire.ServFail, &explained{code: dns.ExtendedErrorCodeOther, text: tooMany})
		return
	}
	w.Drop()
}

// explained is an error that tells the client why (RFC 8914).
type explained struct {
	code uint16
	text string
	more error // nil, or what the client is told beside it
}

// repeated is told beside a failure that was found for an earlier query (RFC 9520).
var repeated error = &explained{code: dns.ExtendedErrorCodeCachedError}

// Error is the text for the log.
func (e *explained) Error() string { return e.text }

// ExtendedError is the info code and the extra text of the client's EDE option.
func (e *explained) ExtendedError() (code uint16, text string) { return e.code, clip(e.text) }

// Unwrap is what the client is told beside it.
func (e *explained) Unwrap() error { return e.more }

// Resolves implements edns.Resolver.
func (e *explained) Resolves() {}

// maxText is the longest extra text, in octets.
const maxText = 80

func clip(s string) string { return s[:min(len(s), maxText)] }

// keyOf is what the jobs of q's question are found by.
func (r *resolver) keyOf(q *wire.Query) jobKey {
	return jobKey{string(q.Lower()), q.Type(), r.subnetOf(q)}
}
