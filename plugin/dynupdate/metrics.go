package dynupdate

import (
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	requests = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "requests_total",
		Help: "Counter of UPDATE requests, by their answer's rcode.",
	}, []string{"server", "zone_name", "rcode"})
	recordsChanged = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "records_changed_total",
		Help: "Counter of records that were added or removed.",
	}, []string{"zone_name", "action"})
	ignored = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "ignored_total",
		Help: "Counter of update records that were passed over, as RFC 2136 says.",
	}, []string{"zone_name", "reason"})
	forwarded = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "forwarded_total",
		Help: "Counter of UPDATE requests that were to be passed on.",
	}, []string{"zone_name", "result"})
	commitSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "commit_duration_seconds",
		Help:    "Histogram of the time from the first update of a commit until it is on stable storage.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 14),
	}, []string{"zone_name"})
)
