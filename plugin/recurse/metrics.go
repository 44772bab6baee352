package recurse

import (
	"errors"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help,
	}, append([]string{"server"}, labels...))
}

func histogramVec(name, help string, buckets []float64) *prometheus.HistogramVec {
	return promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: plugin.NativeHistogramBucketFactor,
	}, []string{"server"})
}

// Metrics of what is asked of servers, and of what clients get.
var (
	queries         = counterVec("queries_total", "Counter of queries to servers, by how they ended.", "proto", "family", "result")
	queryDuration   = histogramVec("query_duration_seconds", "Histogram of the time from each query to a server to its reply.", plugin.TimeBuckets)
	repliesIgnored  = counterVec("replies_ignored_total", "Counter of messages that were no reply to a query under way.", "reason")
	clientDuration  = histogramVec("client_duration_seconds", "Histogram of the time that names took to be resolved which were not kept.", plugin.TimeBuckets)
	perClient       = histogramVec("queries_per_client", "Histogram of how many queries to servers a client's query took.", []float64{0, 1, 2, 4, 8, 16, 32, 64, 128})
	limits          = counterVec("limit_total", "Counter of what a limit stopped.", "limit")
	storeHits       = counterVec("store_hits_total", "Counter of client queries that were answered from what is kept, without a query to a server.", "kind")
	fallbacks       = counterVec("minimisation_fallbacks_total", "Counter of full names that were asked since less of the name had no good answer.")
	synthesizedAll  = counterVec("synthesized_total", "Counter of answers that were made of records validated for other names.", "kind")
	encryptedAll    = counterVec("encrypted_total", "Counter of queries and probes over TLS, by what came of them.", "result")
	prefetches      = counterVec("prefetch_total", "Counter of what was fetched again before its end, behind the client.")
	recursions      = gaugeVec("recursions", "Client queries that are being resolved.")
	serverStates    = gaugeVec("servers", "Server addresses that something is known of.", "state")
	storeBytes      = gaugeVec("store_bytes", "Octets that the stores take.", "kind")
	localRootSerial = gaugeVec("local_root_serial", "Serial of the copy of the root zone that is used, 0 if there is none.")
	primedTimestamp = gaugeVec("priming_timestamp_seconds", "When the root was primed last.")
)

func gaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help,
	}, append([]string{"server"}, labels...))
}

// counts is the metrics of one resolver. Those that are counted for each query are looked up once.
type counts struct {
	server string
	mu     sync.RWMutex
	ends   map[endLabels]prometheus.Counter

	query, client, per prometheus.Observer
	answers, denials   prometheus.Counter    // of storeHits
	made               [3]prometheus.Counter // of synthesizedAll, by store.Kind
}

type endLabels struct{ proto, family, result string }

func newCounts(server string) *counts {
	c := &counts{
		server: server, ends: map[endLabels]prometheus.Counter{},
		query: queryDuration.WithLabelValues(server), client: clientDuration.WithLabelValues(server), per: perClient.WithLabelValues(server),
		answers: storeHits.WithLabelValues(server, "answer"), denials: storeHits.WithLabelValues(server, "denial"),
	}
	for kind, text := range map[store.Kind]string{store.Positive: "wildcard", store.NoData: "nodata", store.NXDomain: "nxdomain"} {
		c.made[kind] = synthesizedAll.WithLabelValues(server, text)
	}
	return c
}

// limit counts what a limit stopped.
func (c *counts) limit(what string) { limits.WithLabelValues(c.server, what).Inc() }

// rootSerial sets the serial of the copy of the root zone.
func (c *counts) rootSerial(serial uint32) {
	localRootSerial.WithLabelValues(c.server).Set(float64(serial))
}

// encrypted counts what came of asking over TLS.
func (c *counts) encrypted(result string) { encryptedAll.WithLabelValues(c.server, result).Inc() }

// synthesized counts an answer that was made of records of other names.
func (c *counts) synthesized(kind store.Kind) { c.made[kind].Inc() }

// ignored counts messages that were no reply.
func (c *counts) ignored(reason string, n int) {
	repliesIgnored.WithLabelValues(c.server, reason).Add(float64(n))
}

// ended counts the end of an exchange.
func (c *counts) ended(f *flight, x *proxy.Exchange, ev iterate.Event) {
	l := endLabels{"udp", family(f.server.Addr.Addr()), "reply"}
	switch {
	case f.secure:
		l.proto = "tls"
		c.encrypted("asked")
	case f.tcp:
		l.proto = "tcp"
	}
	switch {
	case x.Err == nil && ev.Kind == iterate.Replied:
		c.query.Observe(x.RTT.Seconds())
	case errors.Is(x.Err, os.ErrDeadlineExceeded):
		l.result = "timeout"
	default:
		l.result = "error"
	}
	c.mu.RLock()
	n := c.ends[l]
	c.mu.RUnlock()
	if n == nil {
		n = queries.WithLabelValues(c.server, l.proto, l.family, l.result)
		c.mu.Lock()
		c.ends[l] = n
		c.mu.Unlock()
	}
	n.Inc()
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "ipv4"
	}
	return "ipv6"
}

// show sets the gauges.
func (c *counts) show(r *resolver) {
	r.jobs.mu.Lock()
	recursions.WithLabelValues(c.server).Set(float64(len(r.jobs.all)))
	r.jobs.mu.Unlock()
	s := r.conf.Stores
	for kind, total := range map[string]func() (int, int64){
		"rrsets": s.RRsets.Total, "delegations": s.Delegations.Total, "failures": s.Failures.Total,
	} {
		_, octets := total()
		storeBytes.WithLabelValues(c.server, kind).Set(float64(octets))
	}
	states, now := map[string]int{"unknown": 0, "alive": 0, "dead": 0, "plain": 0}, r.now()
	s.Servers.Each(func(v *store.Server) { states[v.State(now)]++ })
	for state, n := range states {
		serverStates.WithLabelValues(c.server, state).Set(float64(n))
	}
	if at := r.conf.Shared.PrimedAt(); at != 0 {
		primedTimestamp.WithLabelValues(c.server).Set(float64(at / store.Second))
	}
}

// kept counts a client's query that took no query to a server.
func (c *counts) kept(res *iterate.Result) {
	if res.Rcode == 0 {
		c.answers.Inc()
	} else {
		c.denials.Inc()
	}
}

// resolved counts the end of a job.
func (c *counts) resolved(j *job, res *iterate.Result) {
	switch {
	case j.ahead:
		return
	case j.refresh:
		prefetches.WithLabelValues(c.server).Inc()
		return
	case !j.client:
		return
	}
	if res.Queries == 0 {
		c.kept(res)
		return
	}
	c.per.Observe(float64(res.Queries))
	if res.Wholes > 0 {
		fallbacks.WithLabelValues(c.server).Add(float64(res.Wholes))
	}
	c.client.Observe(time.Since(j.began).Seconds())
}
