package template

import (
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var matchLabels = []string{"server", "zone", "view", "class", "type"}

var (
	matches = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "matches_total",
		Help:      "Counter of queries that a template was for.",
	}, matchLabels)
	templateFailures = failures("template_failures_total", "Counter of texts that could not be rendered.")
	rrFailures       = failures("rr_failures_total", "Counter of rendered texts that were no resource record.")
)

func failures(name, help string) *prometheus.CounterVec {
	labels := append(append([]string(nil), matchLabels...), "section", "template")
	return promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help,
	}, labels)
}
