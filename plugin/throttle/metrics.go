package throttle

import (
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var exceeded = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace, Subsystem: pluginName, Name: "exceeded_total",
	Help: "Counter of queries and replies that were too many, by the bound that they passed and by what became of them.",
}, []string{"server", "reason", "action"})

// countFromZero makes the counters of a server that may count with these settings: who watches them sees the first step, too.
func (s *settings) countFromZero(server string) {
	actions := []action{drop}
	switch {
	case s.observe:
		actions = []action{pass}
	case s.slip > 0:
		actions = append(actions, slip)
	}
	for _, r := range []reason{byQueries, byResponses, byDenials, byErrors} {
		if r == byQueries && s.perClient.rate == 0 || r != byQueries && s.rate(r) == 0 {
			continue
		}
		for _, a := range actions {
			exceeded.WithLabelValues(server, r.String(), string(a))
		}
		if r == byQueries && !s.observe {
			exceeded.WithLabelValues(server, r.String(), string(refuse))
		}
	}
}
