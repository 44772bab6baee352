package cookie

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	queries = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "queries_total",
		Help: "Counter of queries, by the cookie that they show.",
	}, []string{"server", "result"})
	refused = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "refused_total",
		Help: "Counter of queries that were refused for want of a good cookie, by the reply.",
	}, []string{"server", "reply"})
)

// counts are the counters of one server.
type counts struct {
	queries              [wire.CookieValid + 1]prometheus.Counter
	badCookie, truncated prometheus.Counter
}

// count counts a query that is decided.
func (c *Cookie) count(ctx context.Context, state wire.CookieState, f refusal) {
	c.once.Do(func() { c.counts = countsOf(plugin.Label(ctx)) })
	c.counts.queries[state].Inc()
	switch f {
	case badCookie:
		c.counts.badCookie.Inc()
	case truncated:
		c.counts.truncated.Inc()
	}
}

// countsOf makes the counters of a server, which are 0 then.
func countsOf(server string) *counts {
	all := &counts{badCookie: refused.WithLabelValues(server, "badcookie"), truncated: refused.WithLabelValues(server, "truncated")}
	for state := range all.queries {
		all.queries[state] = queries.WithLabelValues(server, wire.CookieState(state).String())
	}
	return all
}
