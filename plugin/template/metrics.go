package template

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var matchLabels = []string{"server", "zone", "view", "class", "type"}

var (
	matches = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "matches_total",
		Help:      "Counter of queries that a template was for.",
	}, matchLabels)
	templateFailures = failures("template_failures_total", "Counter of texts that could not be rendered.")
	rrFailures       = failures("rr_failures_total", "Counter of rendered texts that were no resource record.")
)

// countFrom0 makes the series of t for a server. Of those that are for all classes or types it is not known which there
// will be.
func (t *template) countFrom0(server, view string) {
	if t.class == dns.ClassANY || t.qtype == dns.TypeANY {
		return
	}
	for _, zone := range t.zones {
		labels := []string{server, zone, view, dns.Class(t.class).String(), dns.Type(t.qtype).String()}
		matches.WithLabelValues(labels...)
		for s, records := range t.sections {
			for i := range records {
				each := append(labels[:len(labels):len(labels)], sectionNames[s], records[i].text.Tree.Root.String())
				templateFailures.WithLabelValues(each...)
				rrFailures.WithLabelValues(each...)
			}
		}
	}
}

// labelsOf are the labels of a query that a template is for.
func labelsOf(ctx context.Context, d *data) []string {
	return []string{metrics.WithServer(ctx), d.Zone, metrics.WithView(ctx), labelOf(d.Class, dns.StringToClass), labelOf(d.Type, dns.StringToType)}
}

// labelOf is the label of a type or a class: those without a name have one in common, as anybody may ask for any.
func labelOf(text string, known map[string]uint16) string {
	if _, ok := known[text]; ok {
		return text
	}
	return "other"
}

func failures(name, help string) *prometheus.CounterVec {
	labels := append(append([]string(nil), matchLabels...), "section", "template")
	return promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help,
	}, labels)
}
