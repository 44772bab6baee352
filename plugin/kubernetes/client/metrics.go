package client

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/client-go/tools/metrics"
)

var (
	requestDuration = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace:                   plugin.Namespace,
		Subsystem:                   "kubernetes",
		Name:                        "rest_client_request_duration_seconds",
		NativeHistogramBucketFactor: plugin.NativeHistogramBucketFactor,
		Help:                        "Seconds that requests to the Kubernetes API took, by verb and host.",
	}, []string{"verb", "host"})

	rateLimiterDuration = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace:                   plugin.Namespace,
		Subsystem:                   "kubernetes",
		Name:                        "rest_client_rate_limiter_duration_seconds",
		NativeHistogramBucketFactor: plugin.NativeHistogramBucketFactor,
		Help:                        "Seconds that requests to the Kubernetes API were held back by apiserver_qps, by verb and host.",
	}, []string{"verb", "host"})

	requestResults = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace,
		Subsystem: "kubernetes",
		Name:      "rest_client_requests_total",
		Help:      "Requests to the Kubernetes API, by status code, method and host.",
	}, []string{"code", "method", "host"})
)

func init() {
	metrics.Register(metrics.RegisterOpts{
		RequestLatency:     latency{requestDuration},
		RateLimiterLatency: latency{rateLimiterDuration},
		RequestResult:      results{},
	})
}

// observe notes how long a request took, as client-go does for requests that it reads whole.
func observe(verb, host string, d time.Duration) {
	requestDuration.WithLabelValues(verb, label(host)).Observe(d.Seconds())
}

type latency struct{ seconds *prometheus.HistogramVec }

// Observe implements metrics.LatencyMetric.
func (l latency) Observe(_ context.Context, verb string, u url.URL, d time.Duration) {
	l.seconds.WithLabelValues(label(verb), label(u.Host)).Observe(d.Seconds())
}

type results struct{}

// Increment implements metrics.ResultMetric.
func (results) Increment(_ context.Context, code, method, host string) {
	requestResults.WithLabelValues(label(code), label(method), label(host)).Inc()
}

// label returns a value that Prometheus accepts: valid UTF-8.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
