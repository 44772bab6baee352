package control

import (
	"net/http"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/status"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// families is the metrics of the process whose names begin with one of prefixes, which stand behind "coredns_".
func families(prefixes ...string) ([]*dto.MetricFamily, error) {
	all, err := prometheus.DefaultGatherer.Gather()
	if err != nil && len(all) == 0 {
		return nil, err
	}
	var out []*dto.MetricFamily
	for _, f := range all {
		for _, p := range prefixes {
			if strings.HasPrefix(f.GetName(), plugin.Namespace+"_"+p) {
				out = append(out, f)
				break
			}
		}
	}
	return out, nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// value is a counter's or a gauge's.
func value(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetGauge().GetValue() }

// measure fills in what the metrics say of upstreams.
func measure(all []status.Upstream) error {
	fs, err := families("proxy_request_duration_seconds", "proxy_healthcheck_failures_total", "grpc_request_duration_seconds")
	if err != nil {
		return err
	}
	of := func(m *dto.Metric, do func(*status.Upstream)) {
		for i := range all {
			if name := label(m, "proxy_name"); all[i].Address == label(m, "to") && (name == all[i].Plugin || name == "") {
				do(&all[i])
			}
		}
	}
	sums := map[*status.Upstream]float64{}
	for _, f := range fs {
		for _, m := range f.GetMetric() {
			if f.GetName() == plugin.Namespace+"_proxy_healthcheck_failures_total" {
				of(m, func(u *status.Upstream) { u.Checks += uint64(value(m)) })
				continue
			}
			h := m.GetHistogram()
			of(m, func(u *status.Upstream) {
				u.Requests += h.GetSampleCount()
				sums[u] += h.GetSampleSum()
				if rcode := label(m, "rcode"); rcode == "SERVFAIL" || rcode == "REFUSED" {
					u.Errors += h.GetSampleCount()
				}
			})
		}
	}
	for u, sum := range sums {
		if u.Requests > 0 {
			u.Mean = 1000 * sum / float64(u.Requests)
		}
	}
	return nil
}

// usage is what the connections of a listener do.
type usage struct {
	Server      string            `json:"server"`
	Connections uint64            `json:"connections"`
	Most        uint64            `json:"mostConnections"` // that there may be; 0 is any number
	Limited     map[string]uint64 `json:"limited"`         // by the limit that had an effect
}

func (a *api) connections(*http.Request) (any, error) {
	fs, err := families("dns_connections", "dns_limits_reached_total")
	if err != nil {
		return nil, err
	}
	all := []*usage{}
	for _, s := range dnsserver.Servers(a.controller) {
		u := &usage{Server: s.Addr, Most: uint64(s.LimitsInForce()["connections"]), Limited: map[string]uint64{}}
		for _, f := range fs {
			for _, m := range f.GetMetric() {
				n := uint64(value(m))
				switch {
				case label(m, "server") != s.Addr:
				case label(m, "reason") == "":
					u.Connections += n
				case n > 0:
					u.Limited[label(m, "reason")] += n
				}
			}
		}
		all = append(all, u)
	}
	return map[string]any{"listeners": all}, nil
}

func (a *api) limits(*http.Request) (any, error) {
	listeners := map[string]map[string]float64{}
	for _, s := range dnsserver.Servers(a.controller) {
		listeners[s.Addr] = s.LimitsInForce()
	}
	return map[string]any{"memory": memory.Limit(), "listeners": listeners}, nil
}
