package afxdp

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func counterOf(name, help string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: "coredns", Subsystem: "xdp", Name: name, Help: help,
	}, []string{"interface"})
}

var (
	received = counterOf("received_total", "Datagrams that were read past the kernel's network stack.")
	sent     = counterOf("sent_total", "Replies that were sent past the kernel's network stack.")
	dropped  = counterOf("dropped_total", "Datagrams that could not be read, or were not in time.")
)

// counters are those of one interface.
type counters struct{ received, sent, dropped prometheus.Counter }

func countersOf(name string) *counters {
	return &counters{received.WithLabelValues(name), sent.WithLabelValues(name), dropped.WithLabelValues(name)}
}
