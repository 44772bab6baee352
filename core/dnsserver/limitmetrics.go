package dnsserver

import (
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	// limitsReached counts whenever one of the limits of limits.go had an effect.
	limitsReached = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: serverType, Name: "limits_reached_total",
		Help: "Counter of connections, queries and replies that were refused, ended or dropped because a limit was reached.",
	}, []string{"server", "reason"})
	connections = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: serverType, Name: "connections",
		Help: "Number of open connections.",
	}, []string{"server"})
	// proxyRefused counts PROXY headers that had no effect.
	proxyRefused = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: serverType, Name: "proxy_headers_refused_total",
		Help: "Counter of PROXY protocol headers that were ignored or rejected, or are invalid.",
	}, []string{"server", "reason"})
)

// limited counts that a limit had an effect.
func (s *Server) limited(reason string) { limitsReached.WithLabelValues(s.Addr, reason).Inc() }
