package throttle

import (
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var exceeded = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace, Subsystem: pluginName, Name: "exceeded_total",
	Help: "Counter of queries and replies that were too many, by the bound that they passed and by what became of them.",
}, []string{"server", "reason", "action"})
