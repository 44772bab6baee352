package service

import (
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// limitsReached counts whenever one of the limits had an effect.
var limitsReached = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace, Subsystem: "dns", Name: "limits_reached_total",
	Help: "Counter of connections, queries and replies that were refused, ended or dropped because a limit was reached.",
}, []string{"server", "reason"})

// limitReasons are the values of the label reason of limitsReached.
var limitReasons = []string{
	"client_connections", "connections", "control_frames", "handshake_time", "header_bytes", "idle_time", "in_flight_bytes", "queries",
	"query_bytes", "read_time", "streams", "unread_bytes", "waiting", "write_time",
}

// droppedWaiting is the label reason of queries that are dropped as too many wait.
const droppedWaiting = "waiting"

// CountFromZero makes the counters of a Service with that label whose other labels are known: who watches them sees the
// first step, too.
func CountFromZero(label string) {
	for _, reason := range limitReasons {
		limitsReached.WithLabelValues(label, reason)
	}
	vars.QueriesDropped.WithLabelValues(label, droppedWaiting)
}

// Limited counts that a limit had an effect; reason is one of those that are counted from zero.
func (s *Service) Limited(reason string) { limitsReached.WithLabelValues(s.Label, reason).Inc() }

// Limited is what Limited has counted for a Service with that label.
func Limited(label, reason string) prometheus.Counter {
	return limitsReached.WithLabelValues(label, reason)
}

// Recovered counts and tells a panic that was recovered from, of code of others. Those of plugins are the chain's.
func (s *Service) Recovered(v any) {
	vars.Panic.Inc()
	log.Errorf("Recovered from panic in server: %q %v", s.Label, v)
}

// Dropped counts a query that is dropped as too many wait.
func (s *Service) Dropped() { vars.QueriesDropped.WithLabelValues(s.Label, droppedWaiting).Inc() }
