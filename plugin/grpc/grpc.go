// Package grpc asks upstreams that speak the gRPC service of package pb, and passes on what they reply.
//
//	query ──in the zone?──▶ each upstream once, in the order of the policy ──first reply──▶ client
//
// There are no health checks: gRPC's own connections say soon enough that an upstream is not there, and when it
// is again. One that hangs is waited for while the next one is asked. Start at GRPC.ServeDNS; proxy.go asks one
// upstream, over the connections of links.go, race.go one after the other.
package grpc

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/policy"
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/within"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "grpc"

// Errors of queries that no upstream answered.
var (
	// ErrNoHealthy is the error if no upstream could be asked at all.
	ErrNoHealthy = errors.New("no healthy gRPC proxies")
	// ErrDNSMessageTooLarge is the error of a message that is longer than DNS allows.
	ErrDNSMessageTooLarge = errors.New("dns message exceeds size limit")
)

// overall is how long a query may take.
const overall = 5 * time.Second

// GRPC is the plugin.
type GRPC struct {
	Next plugin.Handler
	// Fall says which names are passed on if no upstream answers, or all say that the name does not exist.
	Fall fall.F

	zones   within.Zones
	policy  policy.Policy
	proxies []*Proxy
	hedge   bool // ask a second upstream if the first one is slow
	details bool // errors tell which upstream was asked last

	patience eventloop.Patience // with upstreams that are silent about some names
}

// Policy decides in which order upstreams are asked.
type Policy interface {
	List([]*Proxy) []*Proxy
	String() string
}

// Name is the plugin's name.
func (g *GRPC) Name() string { return pluginName }

// Len is the number of upstreams.
func (g *GRPC) Len() int { return len(g.proxies) }

// ServeDNS asks upstreams for names in the zone, and passes other queries on.
func (g *GRPC) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if !g.zones.MatchMsg(r) {
		return g.pass(ctx, w, r)
	}
	if r.Opcode == dns.OpcodeUpdate { // the upstream would take it for ours
		return dns.RcodeRefused, nil
	}
	state := request.Request{W: w, Req: r}
	through := g.Next != nil && g.Fall.Through(state.Name())
	m, tried, err := g.ask(ctx, r)
	switch {
	case err != nil && through, err == nil && m.Rcode == dns.RcodeNameError && through:
		return plugin.NextOrFailure(pluginName, g.Next, ctx, w, r)
	case err != nil:
		return dns.RcodeServerFailure, g.explain(err, tried)
	case !state.Match(m):
		return dns.RcodeSuccess, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeFormatError))
	}
	m.Id, m.Question[0] = r.Id, r.Question[0] // the call says whose reply it is, whatever the upstream made of these
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// pass hands on a query that is for others. Without a next plugin that is a failure, but not an error.
func (g *GRPC) pass(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if g.Next == nil {
		return dns.RcodeServerFailure, nil
	}
	return plugin.NextOrFailure(pluginName, g.Next, ctx, w, r)
}

// tried is what has failed of a query.
type tried struct {
	last   *Proxy // nil if none was asked
	failed int
}

// explain is err with what was tried, if *errors* is to tell that.
func (g *GRPC) explain(err error, t tried) error {
	switch {
	case !g.details:
		return err
	case t.last == nil:
		return plugin.WithAttempt(err, "", "", 0)
	}
	return plugin.WithAttempt(err, t.last.addr, transport.GRPC, t.failed)
}

// ask asks upstreams, and returns the first reply, or what failed and the last error.
func (g *GRPC) ask(ctx context.Context, r *dns.Msg) (m *dns.Msg, t tried, err error) {
	ctx, cancel := context.WithTimeout(ctx, overall)
	defer cancel()
	packet, err := packed(r)
	if err != nil {
		return nil, t, err
	}
	race := race{order: g.order()}
	if len(race.order) == 0 {
		return nil, t, ErrNoHealthy
	}
	detour := advice.DetourOf(ctx)
	if detour != nil {
		race.order = slices.Clone(race.order)
		advice.Sort(detour, race.order, func(p *Proxy) string { return p.addr })
	}
	if g.hedge {
		race.slow = race.order[0].latency.Slow()
	}
	ctx, done := g.patience.Wait(ctx)
	m, err = race.run(ctx, packet, r)
	if err = done(err); err != nil {
		return nil, tried{race.last, race.failed}, err
	}
	if detour != nil {
		detour.Took(race.last.addr)
	}
	return withoutHopByHop(m), t, nil
}

// order is the upstreams as the policy has them.
func (g *GRPC) order() []*Proxy {
	m, ok := g.policy.(policy.Measuring)
	if !ok {
		return policy.List(g.policy, g.proxies)
	}
	list := make([]*Proxy, 0, len(g.proxies))
	for _, i := range m.OrderBy(nil, len(g.proxies), timed(g.proxies)) {
		list = append(list, g.proxies[i])
	}
	return list
}

// timed is upstreams as a policy.Timed.
type timed []*Proxy

// Took implements policy.Timed.
func (t timed) Took(i int) time.Duration { return t[i].latency.Smooth() }

// packed is r as it is sent: without what is the client's and ours alone, unless it is signed.
func packed(r *dns.Msg) ([]byte, error) {
	packet, err := r.Pack()
	if err != nil {
		return nil, err
	}
	if len(packet) > dns.MaxMsgSize {
		return nil, tooLarge(len(packet))
	}
	if r.IsTsig() == nil {
		packet, _ = replies.CutHopByHop(packet)
	}
	return packet, nil
}

// withoutHopByHop takes what is the upstream's and ours alone out of a reply.
func withoutHopByHop(m *dns.Msg) *dns.Msg {
	if opt := m.IsEdns0(); opt != nil && m.IsTsig() == nil {
		opt.Option = slices.DeleteFunc(opt.Option, func(o dns.EDNS0) bool { return replies.HopByHop(o.Option()) })
	}
	return m
}

// ServeWire passes on queries for names that are not in the zone. The others need a goroutine that waits.
func (g *GRPC) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	switch {
	case g.zones.Match(q):
		return wire.Unpack
	case g.Next == nil:
		w.Fail(wire.ServFail, nil)
		return wire.Done
	}
	return plugin.NextWire(pluginName, g.Next, ctx, w, q)
}

// WireSelf returns g.
func (g *GRPC) WireSelf() plugin.Handler { return g }
