package dns64

import (
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// RequestsTranslatedCount counts queries whose A records were looked up to make a reply of, also if there turned out to be none.
var RequestsTranslatedCount = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace, Subsystem: pluginName, Name: "requests_translated_total",
	Help: "Counter of DNS requests translated by dns64.",
}, []string{"server"})
