package validator

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help,
	}, append([]string{"server"}, labels...))
}

// Metrics of what was found out, and of the work.
var (
	results    = counterVec("results_total", "Counter of replies that were judged, by what they are.", "status")
	bogusTotal = counterVec("bogus_total", "Counter of bogus replies, by the code that tells why (RFC 8914).", "reason")
	checks     = counterVec("checks_total", "Counter of signatures that were computed.", "algorithm", "result")
	budgets    = counterVec("budget_total", "Counter of replies that would have cost more than may be spent, by what was spent.", "budget")
	duration   = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "check_seconds", Buckets: checkBuckets,
		Help: "Histogram of the time that each step of a check took.", NativeHistogramBucketFactor: plugin.NativeHistogramBucketFactor,
	}, []string{"server"})
)

var checkBuckets = prometheus.ExponentialBuckets(10e-6, 4, 8)

// counts is the metrics of one server block.
type counts struct {
	server string
	once   sync.Once
	steps  prometheus.Observer
}

// took notes how long a step of a check took.
func (c *counts) took(d time.Duration) {
	c.once.Do(func() { c.steps = duration.WithLabelValues(c.server) })
	c.steps.Observe(d.Seconds())
}

func (c *counts) result(v *validate.Verdict) {
	results.WithLabelValues(c.server, v.Status.String()).Inc()
	if v.Status == validate.Bogus {
		bogusTotal.WithLabelValues(c.server, strconv.Itoa(int(v.Code))).Inc()
	}
	if v.Over {
		budgets.WithLabelValues(c.server, strings.TrimPrefix(v.Text, "budget ")).Inc()
	}
}

func (c *counts) check(algorithm uint8, good bool) {
	result := "bad"
	if good {
		result = "good"
	}
	checks.WithLabelValues(c.server, strconv.Itoa(int(algorithm)), result).Inc()
}
