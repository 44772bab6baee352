package object

import (
	"time"

	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	api "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// DNSProgrammingLatency is the time from a change of a service's pods until it can be seen in DNS.
	DNSProgrammingLatency = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace:                   plugin.Namespace,
		Subsystem:                   "kubernetes",
		Name:                        "dns_programming_duration_seconds",
		Buckets:                     prometheus.ExponentialBuckets(0.001, 2, 20), // 1 ms to 9 min
		NativeHistogramBucketFactor: plugin.NativeHistogramBucketFactor,
		Help:                        "Seconds from a change of a service's endpoints until DNS answers from it.",
	}, []string{"service_kind"})

	// DurationSinceFunc is time.Since; tests may replace it.
	DurationSinceFunc = time.Since
)

// Values of the label service_kind.
const (
	KindClusterIP            = "cluster_ip"
	KindHeadlessWithSelector = "headless_with_selector"
)

// RecordLatencyFunc is called with an object that changed, to measure how long that took to arrive.
type RecordLatencyFunc func(meta.Object)

// EndpointLatencyRecorder measures, change by change, how long the endpoints of a service took to arrive.
type EndpointLatencyRecorder struct {
	// TT is when the change happened; zero if the object does not say.
	TT time.Time
	// ServiceFunc returns the services that an endpoint slice belongs to.
	ServiceFunc func(meta.Object) []*Service
	// Services are those of the object at hand.
	Services []*Service
}

// begin notes what has to be known of the object before it is converted.
func (l *EndpointLatencyRecorder) begin(obj meta.Object) {
	l.TT, l.Services = time.Time{}, nil
	at, ok := obj.GetAnnotations()[api.EndpointsLastChangeTriggerTime]
	if !ok {
		return
	}
	tt, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return
	}
	if l.TT = tt; l.ServiceFunc != nil {
		l.Services = l.ServiceFunc(obj)
	}
}

// record observes the change, which is in the indexer by now. It counts if
// the time of the change is known and exactly one service is concerned.
func (l *EndpointLatencyRecorder) record() {
	if l.TT.IsZero() || len(l.Services) != 1 {
		return
	}
	kind := KindClusterIP
	if l.Services[0].Headless() {
		kind = KindHeadlessWithSelector
	}
	DNSProgrammingLatency.WithLabelValues(kind).Observe(DurationSinceFunc(l.TT).Seconds())
}
