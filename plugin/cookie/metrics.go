package cookie

import (
	"github.com/coredns/coredns/core/dnsserver"
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
func (c *Cookie) count(server *dnsserver.Server, state wire.CookieState, f refusal) {
	c.once.Do(func() { c.counts = countsOf(server) })
	c.counts.queries[state].Inc()
	switch f {
	case badCookie:
		c.counts.badCookie.Inc()
	case truncated:
		c.counts.truncated.Inc()
	}
}

func countsOf(server *dnsserver.Server) *counts {
	name := ""
	if server != nil {
		name = server.Addr
	}
	all := &counts{badCookie: refused.WithLabelValues(name, "badcookie"), truncated: refused.WithLabelValues(name, "truncated")}
	for state := range all.queries {
		all.queries[state] = queries.WithLabelValues(name, wire.CookieState(state).String())
	}
	return all
}
