// Package forward asks other servers, for names in a zone, and passes on what they reply.
//
//	query ──wire.go──▶ course.go ──ask──▶ asyncrun.go, blockingrun.go ──▶ proxy.Proxy ──▶ upstream
//	                      ▲    pure               │
//	                      └────replied, failed────┘──answer──▶ client
//
// course.go decides whom a query is sent to and what becomes of it. blockingrun.go carries that out for a goroutine that
// waits, asyncrun.go for queries of the wire lane, which are parked on a pendingReply. hedge.go asks a second upstream
// beside a slow one. explain.go tells clients why. upstreams.go reads what the Corefile names, names.go and resolver.go
// turn host names into addresses, now and then again. What an upstream is asked with, and whether it is well, is the
// business of package proxy.
//
// A Forward serves any number of queries at once. Upstreams may come and go meanwhile; a query keeps those that
// there were when it began. Start at Forward.ServeDNS.
package forward

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/policy"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/updates"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/within"

	"github.com/miekg/dns"
)

const pluginName = "forward"

var logger = log.NewWithPlugin(pluginName)

// Errors of queries that no upstream answered.
var (
	ErrNoHealthy    = proxy.ErrNoHealthy
	ErrNoForward    = proxy.ErrNoForward
	ErrCachedClosed = proxy.ErrCachedClosed
)

// Options is how upstreams are asked.
type Options = proxy.Options

// Forward asks its upstreams.
type Forward struct {
	Next plugin.Handler
	// ErrLimitExceeded is the error of queries that are refused because there are too many.
	ErrLimitExceeded error

	zones         within.Zones
	policy        policy.Policy
	measuring     policy.Measuring // policy, if it is one
	orders        eventloop.PerLoop[batchOrder]
	rules         rules
	maxFails      uint32
	maxAttempts   *uint32 // nil is two for each upstream
	maxConcurrent int64   // 0 is any number
	concurrent    atomic.Int64
	doubted       atomic.Int64 // when a query that gave way had an upstream checked
	probeInterval time.Duration
	ede           bool               // errors tell clients why
	details       bool               // *errors* tells of attempts; written at the start
	updates       *updates.Forwarder // nil: UPDATE messages are refused
	scrubs        bool               // answers are scrubbed
	referrer      advice.Referrer    // nil: who does not desire recursion is answered by upstreams only
	parentSide    bool               // DS records of the zone itself are the next plugin's
	taps          []dnstapped
	names         *names // nil if no upstream is known by its name

	mu        sync.Mutex // writers of upstreams
	sources   []*source
	upstreams atomic.Pointer[[]*proxy.Proxy]
}

// New is a Forward for all names without upstreams; SetProxy adds these.
func New() *Forward {
	f := &Forward{
		zones:         within.Zones{From: wire.Root},
		policy:        policy.Named("random"),
		maxFails:      2,
		probeInterval: defaultProbeInterval,
	}
	f.upstreams.Store(new([]*proxy.Proxy))
	return f
}

// Takes reports whether a lower-case name in wire form is one that f is for.
func (f *Forward) Takes(name []byte) bool { return f.zones.Cover(name) }

// Name is the plugin's name.
func (f *Forward) Name() string { return pluginName }

// SetProxy adds an upstream and starts it. It belongs to f from then on.
func (f *Forward) SetProxy(p *proxy.Proxy) {
	f.mu.Lock()
	f.sources = append(f.sources, &source{proxies: []*proxy.Proxy{p}})
	f.publish()
	f.mu.Unlock()
	p.Start(f.probeInterval)
}

// SetProxyOptions sets how upstreams are asked. It belongs before the first query.
func (f *Forward) SetProxyOptions(opts proxy.Options) {
	f.rules.forceTCP, f.rules.preferUDP = opts.ForceTCP, opts.PreferUDP
}

// Len is the number of upstreams.
func (f *Forward) Len() int { return len(*f.upstreams.Load()) }

// List is the upstreams in the order in which the next query would try them.
func (f *Forward) List() []*proxy.Proxy { return listing{f.policy}.List(*f.upstreams.Load()) }

// ForceTCP reports whether upstreams are asked over TCP, whatever the client came over.
func (f *Forward) ForceTCP() bool { return f.rules.forceTCP }

// PreferUDP reports whether upstreams are asked over UDP, whatever the client came over.
func (f *Forward) PreferUDP() bool { return f.rules.preferUDP }

// passUpdate passes an UPDATE on, if that is asked for. Otherwise it is refused: an upstream that trusts our address would do for
// any client what it does for us.
func (f *Forward) passUpdate(ctx context.Context, w dns.ResponseWriter) (int, error) {
	if f.updates == nil {
		return dns.RcodeRefused, nil
	}
	return f.updates.Serve(ctx, w, plugin.Packet(ctx))
}

// ServeDNS asks the upstreams for names in the zone, and passes other queries on.
func (f *Forward) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if !f.zones.MatchMsg(r) || f.parentSide && f.ofParentMsg(r) {
		return plugin.NextOrFailure(pluginName, f.Next, ctx, w, r)
	}
	if r.Opcode == dns.OpcodeUpdate {
		return f.passUpdate(ctx, w)
	}
	if f.referrer != nil && !r.RecursionDesired && r.Opcode == dns.OpcodeQuery {
		if done, err := f.refer(w, r); done {
			return dns.RcodeSuccess, err
		}
	}
	if f.maxConcurrent > 0 {
		defer f.concurrent.Add(-1)
		if f.concurrent.Add(1) > f.maxConcurrent {
			maxConcurrentRejects.Inc()
			return dns.RcodeRefused, f.refusal()
		}
	}
	t := f.newBlockingRun(w, r)
	t.course.whole = t.course.stream || plugin.OverQUIC(ctx)
	defer t.free()
	switch a := t.run(ctx, r); a.do {
	case handOn:
		return plugin.NextOrFailure(pluginName, f.Next, ctx, w, r)
	case fail:
		return a.rcode, f.explain(&t.course, t.upstreams, a)
	}
	m := new(dns.Msg)
	if f.scrubs {
		t.reply = f.scrub(t.reply)
	}
	if err := wire.UnpackInto(m, t.reply); err != nil {
		return dns.RcodeServerFailure, err
	}
	if m.IsTsig() != nil {
		m.Compress = compressed(m, t.reply)
	}
	toClient(m, r)
	w.WriteMsg(m)
	return dns.RcodeSuccess, nil
}

// compressed reports whether m, whose packet was reply, becomes that packet again if its names are compressed. A signature covers
// the octets (RFC 8945 §4.3.3).
func compressed(m *dns.Msg, reply []byte) bool {
	c := *m
	c.Compress = true
	b, err := c.Pack()
	return err == nil && bytes.Equal(b, reply)
}

// toClient makes m, an upstream's reply to the question of r, a reply to r: what a reply repeats of its query is as the
// client sent it, whatever the upstream made of it, as in the wire lane (RFC 1035 §4.1.1, §7.3).
func toClient(m, r *dns.Msg) {
	m.Id, m.Opcode, m.Zero = r.Id, r.Opcode, false
	if len(m.Question) == 1 && len(r.Question) == 1 {
		m.Question[0] = r.Question[0] // the case may carry a client's random bits
	}
	if r.Opcode == dns.OpcodeQuery {
		m.RecursionDesired, m.CheckingDisabled = r.RecursionDesired, r.CheckingDisabled
	}
}
