package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Plugins that break a law of the wire lane, one each: the comparison of the lanes must find them.

var mutantCount = promauto.NewCounter(prometheus.CounterOpts{Namespace: "coredns", Subsystem: "mutant", Name: "queries_total", Help: "Queries."})

// mutant passes on, and does something on the way.
type mutant struct {
	next    plugin.Handler
	message func(m *mutant, ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error)
	wire    func(m *mutant, ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome
}

func (m *mutant) Name() string             { return "mutant" }
func (m *mutant) WireSelf() plugin.Handler { return m }

func (m *mutant) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return m.message(m, ctx, w, r)
}

func (m *mutant) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return m.wire(m, ctx, w, q)
}

func (m *mutant) passMessage(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(m.Name(), m.next, ctx, w, r)
}

func (m *mutant) passWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return plugin.NextWire(m.Name(), m.next, ctx, w, q)
}

// nextMutant is the one of the servers that start next.
var nextMutant mutant

func init() {
	at := slices.Index(dnsserver.Directives, "log") + 1
	dnsserver.Directives = slices.Insert(dnsserver.Directives, at, "mutant")
	plugin.Register("mutant", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			m := nextMutant
			m.next = next
			return &m
		})
		return nil
	})
}

// complaints is a judge that keeps what it hears.
type complaints []string

func (*complaints) Helper() {}
func (c *complaints) Errorf(format string, args ...any) {
	*c = append(*c, fmt.Sprintf(format, args...))
}

func TestLanesFindMutants(t *testing.T) {
	dir, upstream, queries := laneWorld(t, 200)
	file := "file " + dir + "/db.example.org example.org"
	count := func(m *mutant, ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		mutantCount.Inc()
		return m.passMessage(ctx, w, r)
	}
	for name, tc := range map[string]struct {
		mutant
		lines string
		hears string // what the comparison complains of; nothing for one that is no mutant
	}{
		"none": {mutant{message: count, wire: func(m *mutant, ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
			out := m.passWire(ctx, w, q)
			if out == wire.Done {
				mutantCount.Inc()
			}
			return out
		}}, "forward . " + upstream, ""},
		"counts before it is done": {mutant{message: count, wire: func(m *mutant, ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
			mutantCount.Inc()
			return m.passWire(ctx, w, q)
		}}, "forward . " + upstream, "coredns_mutant_queries_total"},
		"does not restore": {mutant{message: func(m *mutant, ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			changed := r.Copy()
			changed.CheckingDisabled = true
			return m.passMessage(ctx, w, changed)
		}, wire: func(m *mutant, ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
			q.SetFlag(wire.FlagCD, true)
			return m.passWire(ctx, w, q)
		}}, file, "replies differ"},
		"changes the reply in one lane": {mutant{message: (*mutant).passMessage, wire: func(m *mutant, ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
			out := m.passWire(ctx, w, q)
			if out == wire.Done && w.Holds() {
				w.SetFlag(wire.FlagAD, true)
			}
			return out
		}}, file, "replies differ"},
		"unpacks all": {mutant{message: (*mutant).passMessage, wire: func(*mutant, context.Context, *wire.Reply, *wire.Query) wire.Outcome {
			return wire.Unpack
		}}, file, "the wire lane answered 0.00"},
		"names a wrong writer": {mutant{message: (*mutant).passMessage, wire: func(m *mutant, ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
			out := m.passWire(ctx, w, q)
			w.SetWriter(m.Name())
			return out
		}}, file, "metrics: only in the wire lane: coredns_dns_responses_total"},
	} {
		t.Run(name, func(t *testing.T) {
			nextMutant = tc.mutant
			var heard complaints
			compareLanes(t, &heard, laneCase{name, "mutant\n" + tc.lines + "\n", 0.8, true}, queries)
			all := strings.Join(heard, "\n")
			if (tc.hears == "") != (len(heard) == 0) || !strings.Contains(all, tc.hears) {
				t.Errorf("want complaints of %q, heard %d:\n%.2000s", tc.hears, len(heard), all)
			}
		})
	}
}
