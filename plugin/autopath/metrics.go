package autopath

import (
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var autoPathCount = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace, Subsystem: pluginName, Name: "success_total",
	Help: "Counter of requests that did autopath.",
}, []string{"server"})
