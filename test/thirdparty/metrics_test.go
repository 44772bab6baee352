package thirdparty

import (
	"context"
	"errors"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// teller counts queries: with a counter of the default registry, and with one that it hands to the plugin prometheus.
type teller struct {
	Next plugin.Handler
	own  *prometheus.CounterVec
}

var tellerCount = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace, Subsystem: "teller", Name: "default_total", Help: "Counter of queries.",
}, []string{"server"})

func init() {
	add("teller", "cache", func(c *caddy.Controller) error {
		h := &teller{own: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: plugin.Namespace, Subsystem: "teller", Name: "own_total", Help: "Counter of queries.",
		}, []string{"server"})}
		config := dnsserver.GetConfig(c)
		if config.Handler("prometheus") != nil {
			return errors.New("there are no handlers yet")
		}
		c.OnStartup(func() error {
			m, ok := config.Handler("prometheus").(*metrics.Metrics)
			if !ok {
				return errors.New("no plugin prometheus")
			}
			m.Reg.Unregister(h.own) // that of the server before
			m.MustRegister(h.own)
			m.MustRegister(h.own) // which is once too often, and harmless
			return nil
		})
		config.AddPlugin(func(next plugin.Handler) plugin.Handler {
			h.Next = next
			return h
		})
		return nil
	})
}

func (h *teller) Name() string { return "teller" }

func (h *teller) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	server := metrics.WithServer(ctx)
	h.own.WithLabelValues(server).Inc()
	tellerCount.WithLabelValues(server).Inc()
	return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
}

func TestMetrics(t *testing.T) {
	endpoint := loopback.Addr()
	inBothLanes(t, block("prometheus "+endpoint+"\nteller\nalmanac {\nhost www.example.org 192.0.2.1\n}"), func(t *testing.T, s *server) {
		tellerCount.Reset()
		for range 3 {
			s.expect("www.example.org.", dns.TypeA, "NOERROR A 192.0.2.1")
		}
		all := test.Scrape("http://" + endpoint + "/metrics")
		for _, name := range []string{"coredns_teller_own_total", "coredns_teller_default_total"} {
			if value, labels := test.MetricValue(name, all); value != "6" || labels["server"] == "" {
				t.Errorf("%s is %q %v", name, value, labels)
			}
		}
		if value, labels := test.MetricValueLabel("coredns_dns_responses_total", "almanac", all); value == "" || labels["plugin"] != "almanac" {
			t.Errorf("replies of almanac: %q %v", value, labels)
		}
	})
}
