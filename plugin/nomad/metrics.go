package nomad

import (
	"sync"

	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	succeeded = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "success_requests_total",
		Help: "Counter of queries for services that exist.",
	}, []string{"server", "namespace"})
	failed = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "failed_requests_total",
		Help: "Counter of queries for services that do not exist, or when no agent answered.",
	}, []string{"server", "namespace"})
)

// spaces are namespaces that are known to exist: only these become labels, as anybody can ask for others.
type spaces struct {
	mu  sync.Mutex
	all map[string]bool
}

func (s *spaces) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]bool{}
	}
	s.all[name] = true
}

// label is name, or nothing if it is not known.
func (s *spaces) label(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[name] {
		return name
	}
	return ""
}
