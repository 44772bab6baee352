package kubernetes

import (
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes/store"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	lastEventDesc = prometheus.NewDesc(prometheus.BuildFQName(plugin.Namespace, pluginName, "last_event_timestamp_seconds"),
		"Unix time at which the Kubernetes API was last heard of.", nil, nil)
	watchGapsDesc = prometheus.NewDesc(prometheus.BuildFQName(plugin.Namespace, pluginName, "watch_gaps_total"),
		"How often changes in the cluster may have been missed, so that all had to be read again.", nil, nil)
)

// watched is the stores that follow an API; its collector tells how they fare.
var watched = stores{live: map[*store.Store]struct{}{}}

func init() { prometheus.MustRegister(&watched) }

// stores is a set of stores. It implements prometheus.Collector.
type stores struct {
	mu   sync.Mutex
	live map[*store.Store]struct{}
	gaps uint64 // of stores that are not live any more
}

func (s *stores) add(st *store.Store) {
	s.mu.Lock()
	s.live[st] = struct{}{}
	s.mu.Unlock()
}

func (s *stores) remove(st *store.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.live[st]; ok {
		delete(s.live, st)
		s.gaps += st.Stats().Gaps
	}
}

// figures returns the gaps of all stores, and the last event of that one which has had none for the longest time; it is zero if one
// has had none at all, or there are no stores.
func (s *stores) figures() (gaps uint64, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gaps = s.gaps
	first := true
	for st := range s.live {
		figures := st.Stats()
		gaps += figures.Gaps
		if first || figures.LastEvent.Before(last) {
			last = figures.LastEvent
		}
		first = false
	}
	return gaps, last
}

// Describe implements prometheus.Collector.
func (s *stores) Describe(ch chan<- *prometheus.Desc) {
	ch <- lastEventDesc
	ch <- watchGapsDesc
}

// Collect implements prometheus.Collector.
func (s *stores) Collect(ch chan<- prometheus.Metric) {
	gaps, last := s.figures()
	ch <- prometheus.MustNewConstMetric(watchGapsDesc, prometheus.CounterValue, float64(gaps))
	if !last.IsZero() {
		ch <- prometheus.MustNewConstMetric(lastEventDesc, prometheus.GaugeValue, float64(last.UnixNano())/1e9)
	}
}
