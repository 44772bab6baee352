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
	hedges               = counter("hedges_total", "Counter of second upstreams that were asked because the first one was slow.")
	maxConcurrentRejects = counter("max_concurrent_rejects_total", "Counter of queries that were refused because too many were under way.")
)
