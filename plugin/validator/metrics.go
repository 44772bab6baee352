package validator

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/held"
	"github.com/coredns/coredns/plugin/pkg/resolver/autotrust"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
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

func gaugeVec(name, help string, labels ...string) *held.Gauge {
	return held.Of(promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help,
	}, append([]string{"server"}, labels...)))
}

// Metrics of anchors.
var (
	anchorStates = gaugeVec("anchors", "Keys of trust anchors, by what is known of them (RFC 5011).", "zone", "state")
	refreshTime  = gaugeVec("anchor_refresh_timestamp_seconds", "When the keys of an anchor were seen last, and were good.")
	negativeNow  = gaugeVec("ntas", "Negative trust anchors that hold (RFC 7646).")
	clockOffset  = gaugeVec("clock_offset_seconds", "How far the clock for signatures is ahead of the system's.")
)

// hold says that k tells of its anchors from now on. What it returns ends that: who watches when keys were seen last is not
// alarmed by anchors that nobody has any more.
func (c *counts) hold(k *keeper) (release func()) {
	type series struct {
		*held.Gauge
		labels []string
	}
	all := []series{{negativeNow, []string{c.server}}, {clockOffset, []string{c.server}}}
	if k.follow {
		all = append(all, series{refreshTime, []string{c.server}})
	}
	for name := range k.anchors {
		for s := autotrust.AddPend; s <= autotrust.Removed; s++ {
			all = append(all, series{anchorStates, []string{c.server, rrset.Text(name), s.String()}})
		}
	}
	for _, s := range all {
		s.Hold(s.labels...)
	}
	return func() {
		for _, s := range all {
			s.Release(s.labels...)
		}
	}
}

// anchors shows the states of keys.
func (c *counts) anchors(zones []*autotrust.Zone) {
	for _, z := range zones {
		n := map[autotrust.State]int{}
		for _, k := range z.Keys {
			n[k.State]++
		}
		for s := autotrust.AddPend; s <= autotrust.Removed; s++ {
			anchorStates.WithLabelValues(c.server, rrset.Text(z.Name), s.String()).Set(float64(n[s]))
		}
	}
}

// refreshed notes that keys of an anchor were good.
func (c *counts) refreshed(now time.Time) {
	refreshTime.WithLabelValues(c.server).Set(float64(now.Unix()))
}

// show sets what changes with time.
func (c *counts) show(negatives map[string]time.Time, now time.Time) {
	n := 0
	for _, until := range negatives {
		if now.Before(until) {
			n++
		}
	}
	negativeNow.WithLabelValues(c.server).Set(float64(n))
	if clock.Moved() {
		clockOffset.WithLabelValues(c.server).Set(clock.Offset().Seconds())
	}
}

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
