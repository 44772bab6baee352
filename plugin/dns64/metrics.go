package dns64

import (
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// RequestsTranslatedCount counts replies that were made of A records.
var RequestsTranslatedCount = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace, Subsystem: pluginName, Name: "requests_translated_total",
	Help: "Counter of DNS requests translated by dns64.",
}, []string{"server"})
