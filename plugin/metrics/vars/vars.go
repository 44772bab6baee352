// Package vars holds the server's own metrics: vectors that the core, the prometheus
// plugin and others write to, registered with the default Prometheus registry. Start at Report.
package vars

import (
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const subsystem = "dns"

// Dropped is the zone label of queries that the server refused before any plugin saw them.
const Dropped = "dropped"

// sizeBuckets are upper bounds of message sizes in octets.
var sizeBuckets = []float64{0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16e3, 32e3, 48e3, 64e3}

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{Namespace: plugin.Namespace, Subsystem: subsystem, Name: name, Help: help}, labels)
}

// queryCounterVec and queryHistogramVec make vectors that the collector registers.
func queryCounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: plugin.Namespace, Subsystem: subsystem, Name: name, Help: help}, labels)
}

func queryHistogramVec(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: plugin.Namespace, Subsystem: subsystem, Name: name, Help: help,
		Buckets: buckets, NativeHistogramBucketFactor: plugin.NativeHistogramBucketFactor,
	}, labels)
}

// What is counted for each query. Server is the listener's address with its scheme, zone the
// longest of the zones that the prometheus plugin knows, view the name of the block's view, proto udp or tcp,
// family 1 for IPv4 and 2 for IPv6.
var (
	RequestCount    = queryCounterVec("requests_total", "Counter of DNS requests made per zone, protocol and family.", "server", "zone", "view", "proto", "family", "type")
	RequestDuration = queryHistogramVec("request_duration_seconds", "Histogram of the time (in seconds) each request took per zone.", plugin.TimeBuckets, "server", "zone", "view")
	RequestSize     = queryHistogramVec("request_size_bytes", "Size of the EDNS0 UDP buffer in bytes (64K for TCP) per zone and protocol.", sizeBuckets, "server", "zone", "view", "proto")
	RequestDo       = queryCounterVec("do_requests_total", "Counter of DNS requests with DO bit set per zone.", "server", "zone", "view")
	ResponseSize    = queryHistogramVec("response_size_bytes", "Size of the returned response in bytes.", sizeBuckets, "server", "zone", "view", "proto")
	ResponseRcode   = queryCounterVec("responses_total", "Counter of response status codes.", "server", "zone", "view", "rcode", "plugin")

	// Unanswered counts queries that got no reply on purpose. Among the replies they are counted as NOERROR of no plugin, as
	// CoreDNS has always done.
	Unanswered = queryCounterVec("unanswered_total", "Counter of DNS requests that were dropped without a response.", "server", "zone", "view")
)

// QueriesDropped counts queries that got no reply because a limit was reached; reason says which.
var QueriesDropped = counterVec("queries_dropped_total", "Counter of queries that were dropped unanswered because a limit was reached.", "server", "reason")

// What is counted for each reply of the transports that have a status of their own.
var (
	HTTPSResponsesCount  = counterVec("https_responses_total", "Counter of DoH responses per server and http status code.", "server", "status")
	HTTPS3ResponsesCount = counterVec("https3_responses_total", "Counter of DoH3 responses per server and http status code.", "server", "status")
	QUICResponsesCount   = counterVec("quic_responses_total", "Counter of DoQ responses per server and QUIC application code.", "server", "status")
)

// Panic counts panics of plugins; PluginEnabled is 1 for each plugin of a server block.
var (
	Panic = promauto.NewCounter(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Name: "panics_total", Help: "A metrics that counts the number of panics.",
	})
	PluginEnabled = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Name: "plugin_enabled", Help: "A metric that indicates whether a plugin is enabled on per server and zone basis.",
	}, []string{"server", "zone", "view", "name"})
)
