package proxy

import (
	"strconv"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const subsystem = "proxy"

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: subsystem, Name: name, Help: help,
	}, append([]string{"proxy_name", "to"}, labels...))
}

var (
	requestDuration = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: plugin.Namespace, Subsystem: subsystem, Name: "request_duration_seconds",
		Help:    "Histogram of the time from each query to its reply, of queries that got one.",
		Buckets: plugin.TimeBuckets, NativeHistogramBucketFactor: plugin.NativeHistogramBucketFactor,
	}, []string{"proxy_name", "to", "rcode"})
	roundTrip = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: plugin.Namespace, Subsystem: subsystem, Name: "rtt_seconds",
		Help:    "Histogram of the time from sending each query on an open socket or connection to its reply.",
		Buckets: plugin.TimeBuckets,
	}, []string{"proxy_name", "to"})
	healthcheckFailures   = counterVec("healthcheck_failures_total", "Counter of health checks that failed.")
	connCacheHits         = counterVec("conn_cache_hits_total", "Counter of queries that went out on a socket or connection that was open.", "proto")
	segmentationSuspended = counterVec("segmentation_suspended_total", "Counter of how often queries were sent one by one for a while, as an upstream or the system is not up to several at a time.")
	connCacheMisses       = counterVec("conn_cache_misses_total", "Counter of queries for which a socket or connection was opened.", "proto")
	repliesIgnored        = counterVec("replies_ignored_total", "Counter of messages from an upstream that were no reply to a query under way.", "reason")
)

// kind is how a query travels, as the label proto says it.
type kind uint8

const (
	viaUDP kind = iota
	viaTCP
	viaTLS
	viaQUIC
	kinds
)

func (k kind) String() string { return [kinds]string{"udp", "tcp", "tcp-tls", "quic"}[k] }

// counts is one upstream's metrics, each looked up once.
type counts struct {
	hits, misses children[kind]
	ignored      children[replies.Verdict]
	durations    [24]atomic.Pointer[prometheus.Observer] // by rcode
	rtt          atomic.Pointer[prometheus.Observer]
	name, addr   string
}

func (c *counts) init(p *Proxy) {
	c.name, c.addr = p.name, p.addr
	for vec, to := range map[*prometheus.CounterVec]*children[kind]{connCacheHits: &c.hits, connCacheMisses: &c.misses} {
		to.vec, to.name, to.addr = vec, p.name, p.addr
	}
	c.ignored.vec, c.ignored.name, c.ignored.addr = repliesIgnored, p.name, p.addr
}

// begin makes the counters whose labels are known, so that they are there before they count. The settings of p are
// complete.
func (c *counts) begin(p *Proxy) {
	healthcheckFailures.WithLabelValues(c.name, c.addr)
	plain := p.protocol == transport.DNS && !p.secured()
	if plain {
		segmentationSuspended.WithLabelValues(c.name, c.addr)
	}
	for v := replies.TooShort; v < replies.Verdicts; v++ {
		if v != replies.OtherAddress && (plain || v != replies.OtherCookie && v != replies.OtherCase) {
			c.ignored.get(v)
		}
	}
}

// miss counts a query for which a socket or connection was opened. From the second one on there could have been a
// hit, so hits are counted from then on, with 0 if there was none: over UDP most queries have a socket of their
// own.
func (c *counts) miss(k kind) {
	if c.misses.known(k) {
		c.hits.get(k)
	}
	c.misses.get(k).Inc()
}

// ignore counts what came in and was no reply.
func (p *Proxy) ignore(why replies.Verdict, n int) {
	p.counts.ignored.get(why).Add(float64(n))
	if p.onIgnored != nil {
		p.onIgnored(why.String(), n)
	}
}

// observeTrip notes the time, in seconds, that a round trip took.
func (c *counts) observeTrip(seconds float64) {
	trip := c.rtt.Load()
	if trip == nil {
		o := roundTrip.WithLabelValues(c.name, c.addr)
		trip = &o
		c.rtt.Store(trip)
	}
	(*trip).Observe(seconds)
}

// observe notes the time, in seconds, that a reply took.
func (c *counts) observe(code int, seconds float64) {
	if uint(code) >= uint(len(c.durations)) {
		requestDuration.WithLabelValues(c.name, c.addr, rcodeLabel(code)).Observe(seconds)
		return
	}
	child := c.durations[code].Load()
	if child == nil {
		o := requestDuration.WithLabelValues(c.name, c.addr, rcodeLabel(code))
		child = &o
		c.durations[code].Store(child)
	}
	(*child).Observe(seconds)
}

// rcodeLabel is a return code's name, or its number if it has none.
func rcodeLabel(code int) string {
	if name, ok := dns.RcodeToString[code]; ok {
		return name
	}
	return strconv.Itoa(code)
}

// children is the counters of a vector for one upstream, by its last label. They are looked up once.
type children[L interface {
	~uint8
	String() string
}] struct {
	vec        *prometheus.CounterVec
	name, addr string
	found      [12]atomic.Pointer[prometheus.Counter]
}

// known reports whether the counter is there.
func (c *children[L]) known(label L) bool { return c.found[label].Load() != nil }

func (c *children[L]) get(label L) prometheus.Counter {
	if child := c.found[label].Load(); child != nil {
		return *child
	}
	child := c.vec.WithLabelValues(c.name, c.addr, label.String())
	c.found[label].Store(&child)
	return child
}
