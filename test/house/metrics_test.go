package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
)

// metric is a metric as the source defines it.
type metric struct {
	kind             string // CounterOpts and so on
	name, help, path string
}

// metricsOf finds the definitions in a file. Names that are not written out there are left out.
func metricsOf(t *testing.T, path string) (all []metric) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		sel, ok := lit.Type.(*ast.SelectorExpr)
		if !ok || !strings.HasSuffix(sel.Sel.Name, "Opts") {
			return true
		}
		m := metric{kind: sel.Sel.Name, path: path}
		for _, e := range lit.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			text, ok := kv.Value.(*ast.BasicLit)
			if !ok {
				continue
			}
			value, _ := strconv.Unquote(text.Value)
			switch kv.Key.(*ast.Ident).Name {
			case "Name":
				m.name = value
			case "Help":
				m.help = value
			}
		}
		if m.name != "" {
			all = append(all, m)
		}
		return true
	})
	return all
}

// TestMetrics lints the metrics whose definitions are written out.
func TestMetrics(t *testing.T) {
	checked := 0
	sources(t, func(path string) {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, m := range metricsOf(t, path) {
			checked++
			problems, err := promlint.NewWithMetricFamilies([]*dto.MetricFamily{m.family()}).Lint()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				t.Errorf("%s: %s: %s", m.path, m.name, p.Text)
			}
		}
	})
	if checked < 15 {
		t.Errorf("only %d metrics were found", checked)
	}
}

// family is a family with one series, as a scrape would have it.
func (m metric) family() *dto.MetricFamily {
	registry := prometheus.NewRegistry()
	var c prometheus.Collector
	switch m.kind {
	case "CounterOpts":
		c = prometheus.NewCounter(prometheus.CounterOpts{Name: "coredns_" + m.name, Help: m.help})
	case "GaugeOpts":
		c = prometheus.NewGauge(prometheus.GaugeOpts{Name: "coredns_" + m.name, Help: m.help})
	default:
		c = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "coredns_" + m.name, Help: m.help})
	}
	registry.MustRegister(c)
	all, err := registry.Gather()
	if err != nil || len(all) != 1 {
		panic(err)
	}
	return all[0]
}
