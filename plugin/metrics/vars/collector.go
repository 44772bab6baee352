package vars

import (
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// collector is registered in the place of the vectors that loops count for.
type collector struct{}

func init() { prometheus.MustRegister(collector{}) }

var (
	timeBuckets       = plugin.TimeBuckets
	collectedCounters = []*prometheus.CounterVec{RequestCount, RequestDo, ResponseRcode, Unanswered}
)

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range collectedCounters {
		v.Describe(ch)
	}
	for _, v := range []*prometheus.HistogramVec{RequestDuration, RequestSize, ResponseSize} {
		v.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (collector) Collect(ch chan<- prometheus.Metric) {
	var found []*Series
	eachSeries(func(s *Series) { found = append(found, s) })
	counted := map[prometheus.Metric]*addition{}
	for _, s := range found {
		s.gather()
		s.additions(counted)
	}
	for _, v := range collectedCounters {
		v.Collect(ch)
	}
	for _, v := range []*prometheus.HistogramVec{RequestDuration, RequestSize, ResponseSize} {
		metrics := make(chan prometheus.Metric)
		go func() {
			v.Collect(metrics)
			close(metrics)
		}()
		for m := range metrics {
			if a := counted[m]; a != nil {
				m = a
			}
			ch <- m
		}
	}
}

// additions notes which child of a vector each of s's histograms adds to.
func (s *Series) additions(into map[prometheus.Metric]*addition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind := range s.total {
		if s.total[kind].n == 0 {
			continue
		}
		m := s.child(kind).(prometheus.Metric)
		into[m] = &addition{m, s, kind}
	}
}

// child is the child of a vector that a histogram belongs to.
func (s *Series) child(kind int) prometheus.Observer {
	switch kind {
	case took:
		return RequestDuration.WithLabelValues(s.server, s.zone, s.view)
	case requestSizes, requestSizes + 1:
		return RequestSize.WithLabelValues(s.server, s.zone, s.view, wire.Proto(kind-requestSizes).String())
	default:
		return ResponseSize.WithLabelValues(s.server, s.zone, s.view, wire.Proto(kind-responseSizes).String())
	}
}

// addition is a histogram of a vector together with what was counted on loops.
type addition struct {
	prometheus.Metric
	series *Series
	kind   int
}

// Write implements prometheus.Metric.
func (a *addition) Write(out *dto.Metric) error {
	if err := a.Metric.Write(out); err != nil {
		return err
	}
	a.series.mu.Lock()
	defer a.series.mu.Unlock()
	a.series.total[a.kind].addTo(out.Histogram)
	return nil
}
