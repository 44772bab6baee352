package acl

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The counters of the plugin.
var (
	RequestBlockCount *prometheus.CounterVec = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "blocked_requests_total",
		Help: "Counter of DNS requests being blocked.",
	}, []string{"server", "zone", "view"})
	RequestFilterCount *prometheus.CounterVec = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "filtered_requests_total",
		Help: "Counter of DNS requests being filtered.",
	}, []string{"server", "zone", "view"})
	RequestAllowCount *prometheus.CounterVec = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "allowed_requests_total",
		Help: "Counter of DNS requests being allowed.",
	}, []string{"server", "view"})
	RequestDropCount *prometheus.CounterVec = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "dropped_requests_total",
		Help: "Counter of DNS requests being dropped.",
	}, []string{"server", "zone", "view"})
)

// vecOf is the counters of what an action denies.
func vecOf(a action) *prometheus.CounterVec {
	switch a {
	case filter:
		return RequestFilterCount
	case drop:
		return RequestDropCount
	}
	return RequestBlockCount
}

// counts is the counters of one block with their labels filled in, for each server that it is served by.
type counts struct {
	zones int // of all rules

	mu      sync.Mutex // of those who add a server
	servers atomic.Pointer[[]*tally]
}

// tally counts for one server and view. Series appear at their first use.
type tally struct {
	server, view string
	allowed      lazy
	denied       [][drop - block + 1]lazy // by zone and action; nil: not prepared for
}

// of is the tally for the query of ctx.
func (c *counts) of(ctx context.Context) *tally {
	server, view := metrics.WithServer(ctx), metrics.WithView(ctx)
	if c == nil {
		return &tally{server: server, view: view}
	}
	if t := c.find(server, view); t != nil {
		return t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.find(server, view); t != nil {
		return t
	}
	t := &tally{server: server, view: view, denied: make([][drop - block + 1]lazy, c.zones)}
	all := []*tally{t}
	if old := c.servers.Load(); old != nil {
		all = append(all, *old...)
	}
	c.servers.Store(&all)
	return t
}

func (c *counts) find(server, view string) *tally {
	if all := c.servers.Load(); all != nil {
		for _, t := range *all {
			if t.server == server && t.view == view {
				return t
			}
		}
	}
	return nil
}

func (t *tally) allow() {
	if t.allowed.inc() {
		return
	}
	t.allowed.begin(RequestAllowCount.WithLabelValues(t.server, t.view))
}

func (t *tally) deny(v verdict) {
	var l *lazy
	if t.denied != nil {
		l = &t.denied[v.zone.id][v.action-block]
		if l.inc() {
			return
		}
	}
	l.begin(vecOf(v.action).WithLabelValues(t.server, v.zone.text, t.view))
}

// lazy is a counter that is made when it is used.
type lazy struct {
	counter atomic.Pointer[prometheus.Counter]
}

// inc counts. It reports false if the counter is still to be made.
func (l *lazy) inc() bool {
	c := l.counter.Load()
	if c == nil {
		return false
	}
	(*c).Inc()
	return true
}

// begin keeps c, unless l is nil, and counts. To do it twice does no harm: a vector has but one counter for the same labels.
func (l *lazy) begin(c prometheus.Counter) {
	if l != nil {
		l.counter.Store(&c)
	}
	c.Inc()
}
