package reload

import (
	"sync"

	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	failed = promauto.NewCounter(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "failed_total",
		Help: "Counter of the number of failed reload attempts.",
	})
	versionInfo = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "version_info",
		Help: "A metric with a constant '1' value labeled by hash, and value which type of hash generated.",
	}, []string{"hash", "value"})
)

// shown is what versionInfo shows.
var shown struct {
	mu    sync.Mutex
	value string
	by    *plan // of the instance that runs with it; nil if nothing is shown
}

// showVersion makes versionInfo show the hash of the configuration that runs, which is that of p's instance.
func showVersion(p *plan, value string) {
	shown.mu.Lock()
	defer shown.mu.Unlock()
	if shown.by != nil {
		versionInfo.DeleteLabelValues("sha512", shown.value)
	}
	shown.value, shown.by = value, p
	versionInfo.WithLabelValues("sha512", value).Set(1)
}

// hideVersion ends what showVersion began, unless a later instance shows its own: one without reload shows none.
func hideVersion(p *plan) {
	shown.mu.Lock()
	defer shown.mu.Unlock()
	if shown.by == p {
		versionInfo.DeleteLabelValues("sha512", shown.value)
		shown.by = nil
	}
}
