package metrics

import (
	"net"
	"net/http"
	"runtime"
	"sync"

	"github.com/coredns/coredns/coremain"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/endpoint"
	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const path = "/metrics"

// buildInfo is 1 for the program that runs.
var buildInfo = promauto.NewGaugeVec(prometheus.GaugeOpts{
	Namespace: plugin.Namespace, Name: "build_info",
	Help: "A metric with a constant '1' value labeled by version, revision, and goversion from which CoreDNS was built.",
}, []string{"version", "revision", "goversion"})

// serving is how the endpoint is served.
type serving struct {
	webConfig      string // file with TLS and users, "" is none
	runtimeMetrics bool   // all of Go's runtime
	enabled        []row  // what plugin_enabled says while it is served; filled in before it opens
}

// newLease is the lease on an endpoint for m, of the instance owner.
func (m *Metrics) newLease(owner any, s *serving) *endpoint.Lease {
	gatherer := prometheus.DefaultGatherer
	if m.Reg != nil {
		gatherer = m.Reg
	}
	return endpoint.New(owner, endpoint.Spec{
		Addr:      m.Addr,
		Handlers:  map[string]http.Handler{path: &pages{made: promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{})}},
		WebConfig: s.webConfig,
		Opened: func(a net.Addr) {
			ListenAddr = a.String()
			buildInfo.WithLabelValues(coremain.Version(), coremain.GitCommit, runtime.Version()).Set(1)
			if s.runtimeMetrics {
				allOfRuntime()
			}
			enabled.add(s.enabled)
		},
		Closed: func() { enabled.remove(s.enabled) },
		Failed: func(err error) { log.Errorf("Failed to start metrics handler: %s", err) },
	})
}

// allOfRuntime has all metrics of Go's runtime collected, until the process ends.
var allOfRuntime = sync.OnceFunc(func() {
	prometheus.Unregister(collectors.NewGoCollector())
	prometheus.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)))
})

// OnStartup opens the endpoint. That it cannot be opened is logged, and no error.
func (m *Metrics) OnStartup() error { return m.lease.Open() }

// OnRestart says that a reload begins.
func (m *Metrics) OnRestart() error { return m.lease.Restarting() }

// OnFinalShutdown closes the endpoint.
func (m *Metrics) OnFinalShutdown() error { return m.lease.FinalShutdown() }
