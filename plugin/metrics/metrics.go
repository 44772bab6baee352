// Package metrics counts queries and replies, and serves all metrics of the process for Prometheus to collect.
//
//	query ──▶ chain ──▶ count (vars) ──▶ registry ◀── metrics of other plugins
//	                                        │
//	                     GET /metrics ◀─────┘
//
// There is one registry, Prometheus' default one, and one endpoint for each address, however many server blocks have the
// directive. Each block's handler knows the zones that its queries are counted under. Start at Metrics.ServeDNS.
package metrics

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/endpoint"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
)

// ListenAddr is the address of the endpoint that was opened last, for tests.
var ListenAddr string

// Metrics counts the queries of a server block and serves what was counted.
type Metrics struct {
	Next plugin.Handler
	Addr string               // of the endpoint, as it is configured
	Reg  *prometheus.Registry // what the endpoint shows; nil is Prometheus' default, where that is no Registry

	lease *endpoint.Lease

	mu    sync.Mutex            // of those who change the zones
	zones atomic.Pointer[zones] // replaced whole; nil is none
}

// zones is the zones that queries are counted under.
type zones struct {
	names  plugin.Zones
	index  wire.Suffixes[int]       // of names
	mu     sync.Mutex               // of those who add blocks
	blocks atomic.Pointer[[]*block] // what the wire lane has met; replaced whole
}

// New returns a Metrics with an endpoint at addr, which opens with OnStartup, and the default registry.
func New(addr string) *Metrics {
	m := &Metrics{Addr: addr}
	m.Reg, _ = prometheus.DefaultRegisterer.(*prometheus.Registry) // programs may have put something else there
	m.lease = m.newLease(nil, new(serving))
	return m
}

// Name is the plugin's name.
func (m *Metrics) Name() string { return pluginName }

// MustRegister registers c, unless it is registered. It panics if another one is in its way.
func (m *Metrics) MustRegister(c prometheus.Collector) {
	registerer := prometheus.DefaultRegisterer
	if m.Reg != nil {
		registerer = m.Reg
	}
	err := registerer.Register(c)
	var registered prometheus.AlreadyRegisteredError
	if err != nil && !errors.As(err, &registered) {
		panic("metrics: registering a collector: " + err.Error())
	}
}

// AddZone makes z, a fully qualified name, a zone that queries are counted under.
func (m *Metrics) AddZone(z string) { m.ChangeZones([]string{z}, nil) }

// RemoveZone takes back AddZone.
func (m *Metrics) RemoveZone(z string) { m.ChangeZones(nil, []string{z}) }

// ChangeZones is AddZone and RemoveZone for many zones. It takes as long for many as for one.
func (m *Metrics) ChangeZones(add, remove []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone, there := map[string]bool{}, map[string]bool{}
	for _, z := range remove {
		gone[z] = true
	}
	next := new(zones)
	for _, z := range slices.Concat(m.current().names, add) {
		if !gone[z] && !there[z] {
			there[z] = true
			next.add(z)
		}
	}
	m.zones.Store(next)
}

func (z *zones) add(name string) {
	if lower, err := wire.LowerName(name); err == nil {
		z.index.Set(lower, len(z.names))
	}
	z.names = append(z.names, name)
}

// ZoneNames returns the zones that queries are counted under, in a slice of the caller's.
func (m *Metrics) ZoneNames() []string { return slices.Clone(m.current().names) }

// current is the zones now. They are the same ones until they change.
func (m *Metrics) current() *zones {
	if z := m.zones.Load(); z != nil {
		return z
	}
	m.zones.CompareAndSwap(nil, new(zones))
	return m.zones.Load()
}

// zone is the longest zone that a name is or lies below, "." if there is none.
func (m *Metrics) zone(name string) string {
	z := m.current()
	lower, err := wire.LowerName(name)
	if err != nil {
		return cmp.Or(z.names.Matches(name), ".")
	}
	if i, ok := z.index.Longest(lower); ok {
		return z.names[i]
	}
	return "."
}

// ServeDNS passes the query on and counts it when it has been served.
func (m *Metrics) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	// What is counted of the query is what the client asked, so it is read before other plugins change it.
	state := request.Request{W: w, Req: r}
	q := asked(&state)
	series := vars.SeriesOf(WithServer(ctx), m.zone(state.QName()), WithView(ctx))
	o := newObserver(w)
	o.path = plugin.PathFrom(ctx)
	status, err := plugin.NextOrFailure(m.Name(), m.Next, ctx, o, r)

	series.Add(q, o.replied(status))
	return status, err
}
