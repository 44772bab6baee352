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

// shown is the value that versionInfo shows.
var shown struct {
	mu    sync.Mutex
	value string
}

// showVersion makes versionInfo show the hash of the configuration that runs.
func showVersion(value string) {
	shown.mu.Lock()
	defer shown.mu.Unlock()
	if shown.value != "" {
		versionInfo.DeleteLabelValues("sha512", shown.value)
	}
	shown.value = value
	versionInfo.WithLabelValues("sha512", value).Set(1)
}
