package cache

import (
	"context"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/response"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{Namespace: plugin.Namespace, Subsystem: "cache", Name: name, Help: help}, labels)
}

var (
	cacheSize = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: "cache", Name: "entries", Help: "The number of elements in the cache.",
	}, []string{"server", "type", "zones", "view"})
	cacheRequests    = counterVec("requests_total", "The count of cache requests.", "server", "zones", "view")
	cacheHits        = counterVec("hits_total", "The count of cache hits.", "server", "type", "zones", "view")
	cacheMisses      = counterVec("misses_total", "The count of cache misses. Deprecated, derive misses from cache hits/requests counters.", "server", "zones", "view")
	cachePrefetches  = counterVec("prefetch_total", "The number of times the cache has prefetched a cached item.", "server", "zones", "view")
	cacheDrops       = counterVec("drops_total", "The number responses that are not cached, because the reply is malformed.", "server", "zones", "view")
	cacheServedStale = counterVec("served_stale_total", "The number of requests served from stale cache entries.", "server", "zones", "view")
	cacheEvictions   = counterVec("evictions_total", "The count of cache evictions.", "server", "type", "zones", "view")
)

// counts is the metrics of one server, with their labels filled in. Series exist from their first use on.
type counts struct {
	requests, misses, prefetch, drops, servedStale lazyCounter
	hits, evictions                                [2]lazyCounter // by classIndex
	entries                                        [2]prometheus.Gauge
}

// classIndex is 0 for positive answers and 1 for denials.
func classIndex(kind response.Type) int {
	if positive(kind) {
		return 0
	}
	return 1
}

// countsOf is the metrics of the server that ctx tells.
func (c *Cache) countsOf(ctx context.Context) *counts {
	server := ""
	if s, ok := ctx.Value(dnsserver.Key{}).(*dnsserver.Server); ok {
		server = s.Addr
	}
	if n, ok := c.counts.Load(server); ok {
		return n.(*counts)
	}
	n := &counts{}
	for counter, vec := range map[*lazyCounter]*prometheus.CounterVec{
		&n.requests: cacheRequests, &n.misses: cacheMisses, &n.prefetch: cachePrefetches, &n.drops: cacheDrops, &n.servedStale: cacheServedStale,
	} {
		counter.set(vec, server, c.label, c.view)
	}
	for i, class := range [2]string{Success, Denial} {
		n.hits[i].set(cacheHits, server, class, c.label, c.view)
		n.evictions[i].set(cacheEvictions, server, class, c.label, c.view)
		n.entries[i] = cacheSize.WithLabelValues(server, class, c.label, c.view)
	}
	actual, _ := c.counts.LoadOrStore(server, n)
	return actual.(*counts)
}
