package cache

import (
	"context"
	"sync"

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
	labels
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

// shown is the cache whose entries a gauge tells, by its labels: the last one that has served with them.
var shown sync.Map // of *Cache by labels

// labels are those of a cache on one server, without the class.
type labels struct{ server, zones, view string }

// countsOf is the metrics of the server that ctx tells.
func (c *Cache) countsOf(ctx context.Context) *counts {
	server := plugin.Label(ctx)
	if n, ok := c.counts.Load(server); ok {
		return n.(*counts)
	}
	return c.newCounts(server)
}

func (c *Cache) newCounts(server string) *counts {
	n := &counts{labels: labels{server, c.label, c.view}}
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
	shown.Store(n.labels, c)
	return actual.(*counts)
}

// showEntries tells how many entries c has.
func (n *counts) showEntries(c *Cache) {
	n.entries[0].Set(float64(c.positive.len()))
	n.entries[1].Set(float64(c.negative.len()))
}

// showEntries tells how many entries c has, for all servers.
func (c *Cache) showEntries() {
	c.counts.Range(func(_, n any) bool {
		n.(*counts).showEntries(c)
		return true
	})
}

// showLike lets c tell the entries where before does.
func (c *Cache) showLike(before *Cache) {
	before.counts.Range(func(server, _ any) bool {
		c.newCounts(server.(string))
		return true
	})
}

// hideEntries is the end of c. Where it told its entries nobody tells any now, unless another cache serves there.
func (c *Cache) hideEntries() {
	c.counts.Range(func(server, own any) bool {
		n := own.(*counts)
		if shown.CompareAndDelete(n.labels, c) {
			n.entries[0].Set(0)
			n.entries[1].Set(0)
		} else if other, ok := shown.Load(n.labels); ok {
			n.showEntries(other.(*Cache))
		}
		return true
	})
}
