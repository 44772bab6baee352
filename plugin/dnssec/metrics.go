package dnssec

import (
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/held"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	cacheSize = held.Of(promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "cache_entries",
		Help: "The number of elements in the dnssec cache.",
	}, []string{"server", "type"}))
	cacheHits = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "cache_hits_total",
		Help: "The count of cache hits.",
	}, []string{"server"})
	cacheMisses = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "cache_misses_total",
		Help: "The count of cache misses.",
	}, []string{"server"})
)

// signature is the type of all entries.
const signature = "signature"

// counts is the series of one server.
type counts struct {
	server       string
	entries      prometheus.Gauge
	hits, misses prometheus.Counter
}

// countsOf is the series of a server; those of the last one are kept at hand.
func (s *signatures) countsOf(server string) *counts {
	if n := s.counts.Load(); n != nil && n.server == server {
		return n
	}
	n := &counts{server, cacheSize.WithLabelValues(server, signature), cacheHits.WithLabelValues(server), cacheMisses.WithLabelValues(server)}
	s.counts.Store(n)
	return n
}

// begin makes the series of servers, which count from 0 on: the cache of the configuration before is not the one of this.
func (s *signatures) begin(servers []string) {
	for _, server := range servers {
		cacheSize.Hold(server, signature)
		s.countsOf(server).entries.Set(float64(s.cache.Len()))
	}
}

// end ends what begin began: what nobody keeps is told of no more.
func (s *signatures) end(servers []string) {
	for _, server := range servers {
		cacheSize.Release(server, signature)
	}
}
