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
	serialGauge   = gauge("serial", "The serial of the zone that is served.")
	recordsGauge  = gauge("records", "The number of records of the zone.")
	bytesGauge    = gauge("bytes", "The octets of the zone's records in wire form, uncompressed.")
	databaseGauge = gauge("database_bytes", "The octets of the database.")
	readOnlyGauge = gauge("read_only", "1 while the database takes no updates.")
	pendingGauge  = gauge("notify_pending", "1 while secondaries are still to be notified of a change.")
)

func gauge(name, help string) *prometheus.GaugeVec {
	return promauto.NewGaugeVec(prometheus.GaugeOpts{Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help}, []string{"zone_name"})
}

// gauges is the series of one zone.
type gauges struct {
	serial, records, bytes, database, readOnly, pending prometheus.Gauge
	commits                                             prometheus.Observer
}

func (g *gauges) init(zone string) {
	g.serial, g.records, g.bytes = serialGauge.WithLabelValues(zone), recordsGauge.WithLabelValues(zone), bytesGauge.WithLabelValues(zone)
	g.database, g.readOnly, g.pending = databaseGauge.WithLabelValues(zone), readOnlyGauge.WithLabelValues(zone), pendingGauge.WithLabelValues(zone)
	g.commits = commitSeconds.WithLabelValues(zone)
}
