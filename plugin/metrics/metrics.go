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
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/endpoint"
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

	mu    sync.Mutex                   // of those who write zones
	zones atomic.Pointer[plugin.Zones] // replaced whole, never changed; nil is none

	blocks atomic.Pointer[[]*block] // what the wire lane has met; replaced like zones, and forgotten when they change
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
func (m *Metrics) AddZone(z string) {
	m.changeZones(func(zones plugin.Zones) plugin.Zones {
		if slices.Contains(zones, z) {
			return zones
		}
		return append(zones, z)
	})
}

// RemoveZone takes back AddZone.
func (m *Metrics) RemoveZone(z string) {
	m.changeZones(func(zones plugin.Zones) plugin.Zones {
		return slices.DeleteFunc(zones, func(o string) bool { return o == z })
	})
}

// ZoneNames returns the zones that queries are counted under, in a slice of the caller's.
func (m *Metrics) ZoneNames() []string { return slices.Clone(m.current()) }

func (m *Metrics) current() plugin.Zones {
	if z := m.zones.Load(); z != nil {
		return *z
	}
	return nil
}

func (m *Metrics) changeZones(change func(plugin.Zones) plugin.Zones) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := change(slices.Clone(m.current()))
	m.zones.Store(&next)
	m.blocks.Store(nil)
}

// zone is the longest zone that a name is or lies below, "." if there is none.
func (m *Metrics) zone(name string) string {
	if z := m.current().Matches(name); z != "" {
		return z
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
	status, err := plugin.NextOrFailure(m.Name(), m.Next, ctx, o, r)

	reply := o.replied(status)
	if p := plugin.PathFrom(ctx); p != nil {
		reply.Plugin = p.Wrote()
	}
	series.Add(q, reply)
	return status, err
}
