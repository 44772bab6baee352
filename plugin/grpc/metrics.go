package grpc

import (
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/rcode"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics of queries that got a reply, by upstream.
var (
	RequestCount = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "requests_total",
		Help: "Counter of requests made per upstream.",
	}, []string{"to"})
	RcodeCount = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "responses_total",
		Help: "Counter of replies by return code, per upstream.",
	}, []string{"rcode", "to"})
	RequestDuration = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "request_duration_seconds",
		Buckets:                     plugin.TimeBuckets,
		NativeHistogramBucketFactor: plugin.NativeHistogramBucketFactor,
		Help:                        "Histogram of the time each request took.",
	}, []string{"to"})
	hedges = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "hedges_total",
		Help: "Counter of queries to a second upstream because the first one was slow.",
	}, []string{"to"})
)

// counts is the metrics of one upstream.
type counts struct {
	to       string
	requests prometheus.Counter
	duration prometheus.Observer
}

func countsOf(to string) counts {
	return counts{to: to, requests: RequestCount.WithLabelValues(to), duration: RequestDuration.WithLabelValues(to)}
}

func (c *counts) count(rc int, took time.Duration) {
	c.requests.Inc()
	RcodeCount.WithLabelValues(rcode.ToString(rc), c.to).Inc()
	c.duration.Observe(took.Seconds())
}
