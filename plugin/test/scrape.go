package test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// MetricFamily is a metric as a scrape shows it, with all its series.
type MetricFamily struct {
	Name    string
	Help    string
	Type    string
	Metrics []any // of type series
}

// series is one series of a metric, its numbers as text: Value of a counter, gauge or untyped one, and else Count and Sum, with
// Buckets of a histogram (how many are below each bound) or Quantiles of a summary. Other packages reach the fields by reflection
// or as JSON.
type series struct {
	Labels    map[string]string `json:"labels,omitempty"`
	Value     string            `json:"value,omitempty"`
	Buckets   map[string]string `json:"buckets,omitempty"`
	Quantiles map[string]string `json:"quantiles,omitempty"`
	Count     string            `json:"count,omitempty"`
	Sum       string            `json:"sum,omitempty"`
}

// Scrape returns the metrics that url shows, by name, nil if it shows none.
func Scrape(url string) []*MetricFamily {
	resp, err := http.Get(url)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	return parseMetrics(resp.Body)
}

func parseMetrics(r io.Reader) (all []*MetricFamily) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil
	}
	for name, f := range families {
		mf := &MetricFamily{Name: name, Help: f.GetHelp(), Type: f.GetType().String()}
		for _, m := range f.GetMetric() {
			mf.Metrics = append(mf.Metrics, newSeries(m))
		}
		all = append(all, mf)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

func newSeries(m *dto.Metric) series {
	s := series{Labels: map[string]string{}}
	for _, l := range m.GetLabel() {
		s.Labels[l.GetName()] = l.GetValue()
	}
	switch {
	case m.Counter != nil:
		s.Value = number(m.Counter.GetValue())
	case m.Gauge != nil:
		s.Value = number(m.Gauge.GetValue())
	case m.Untyped != nil:
		s.Value = number(m.Untyped.GetValue())
	case m.Histogram != nil:
		s.Count, s.Sum = number(float64(m.Histogram.GetSampleCount())), number(m.Histogram.GetSampleSum())
		s.Buckets = map[string]string{}
		for _, b := range m.Histogram.GetBucket() {
			s.Buckets[number(b.GetUpperBound())] = number(float64(b.GetCumulativeCount()))
		}
	case m.Summary != nil:
		s.Count, s.Sum = number(float64(m.Summary.GetSampleCount())), number(m.Summary.GetSampleSum())
		s.Quantiles = map[string]string{}
		for _, q := range m.Summary.GetQuantile() {
			s.Quantiles[number(q.GetQuantile())] = number(q.GetValue())
		}
	}
	return s
}

// number is f as fmt.Sprint writes it.
func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// MetricValue returns value and labels of the first series of the metric name; of a histogram or summary the value is
// its count. Without such a metric both are empty.
func MetricValue(name string, mfs []*MetricFamily) (string, map[string]string) {
	return MetricValueLabel(name, "", mfs)
}

// MetricValueLabel is MetricValue for the first series one of whose labels has the value label.
func MetricValueLabel(name, label string, mfs []*MetricFamily) (string, map[string]string) {
	for s := range find(name, label, mfs) {
		return s.number(), s.Labels
	}
	return "", nil
}

// ScrapeMetricAsInt returns the sum of the series of the metric name that the server at addr (host:port) shows, of those one of
// whose labels has the value label unless that is empty. It returns nometricvalue if there are none.
func ScrapeMetricAsInt(addr string, name string, label string, nometricvalue int) int {
	sum, found := 0, false
	for s := range find(name, label, Scrape(fmt.Sprintf("http://%s/metrics", addr))) {
		found = true
		if v, err := strconv.ParseFloat(s.number(), 64); err == nil {
			sum += int(v)
		}
	}
	if !found {
		return nometricvalue
	}
	return sum
}

// find yields the series of the metric name that have a label of the value label, all if that is empty.
func find(name, label string, mfs []*MetricFamily) func(func(series) bool) {
	return func(yield func(series) bool) {
		for _, mf := range mfs {
			if mf.Name != name {
				continue
			}
			for _, m := range mf.Metrics {
				if s := m.(series); s.has(label) && !yield(s) {
					return
				}
			}
		}
	}
}

// number is the value, or how many there are.
func (s series) number() string { return s.Value + s.Count }

func (s series) has(value string) bool {
	if value == "" {
		return true
	}
	for _, v := range s.Labels {
		if v == value {
			return true
		}
	}
	return false
}

// String is the series as a scrape writes it, for messages of failed tests.
func (s series) String() string {
	var pairs []string
	for k, v := range s.Labels {
		pairs = append(pairs, fmt.Sprintf("%s=%q", k, v))
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ",") + "} " + s.number()
}
