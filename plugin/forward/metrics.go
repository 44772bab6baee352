package forward

import (
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func counter(name, help string) prometheus.Counter {
	return promauto.NewCounter(prometheus.CounterOpts{Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help})
}

var (
	healthcheckBroken    = counter("healthcheck_broken_total", "Counter of the times that all upstreams were down.")
	maxConcurrentRejects = counter("max_concurrent_rejects_total", "Counter of queries that were refused because too many were under way.")

	// hedges has labels, so that nobody sees it who does not hedge.
	hedges = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "hedges_total",
		Help: "Counter of queries to a second upstream because the first one was slow.",
	}, []string{"to"})
)
