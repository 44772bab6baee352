package thirdparty

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// gatherer is a dnsserver.MetadataCollector of others: the server calls it before the chain, wherever it stands in it.
type gatherer struct{ plugin.Handler }

var gathered atomic.Int32

func (g gatherer) Name() string { return "gatherer" }

func (g gatherer) Collect(ctx context.Context, state request.Request) context.Context {
	gathered.Add(1)
	ctx = metadata.ContextWithMetadata(ctx)
	metadata.SetValueFunc(ctx, "gatherer/name", func() string { return state.Name() })
	return ctx
}

func (g gatherer) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(g.Name(), g.Handler, ctx, w, r)
}

func init() {
	add("gatherer", "file", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return gatherer{next} })
		return nil
	})
}

// surveyor is a provider of labels of others, which counts queries, too.
type surveyor struct{ plugin.Handler }

var surveyed atomic.Int32

func (s surveyor) Name() string { return "surveyor" }

func (s surveyor) Metadata(ctx context.Context, _ request.Request) context.Context {
	surveyed.Add(1)
	return ctx
}

func (s surveyor) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(s.Name(), s.Handler, ctx, w, r)
}

func init() {
	add("surveyor", "file", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return surveyor{next} })
		return nil
	})
}

// A provider is asked about each query, too, though nobody reads labels.
func TestProvider(t *testing.T) {
	inBothLanes(t, "example.org:0 {\nbind 127.0.0.1\nmetadata\nhosts {\n192.0.2.1 a.example.org\n}\nsurveyor\n}\n", func(t *testing.T, s *server) {
		before := surveyed.Load()
		s.expect("a.example.org.", dns.TypeA, "NOERROR A 192.0.2.1")
		if got := surveyed.Load() - before; got != 2 {
			t.Errorf("called %d times, want 2", got)
		}
	})
}

// A collector is asked about each query for its block, also about those that a plugin above it answers, and for views.
func TestCollector(t *testing.T) {
	inBothLanes(t, "example.org:0 {\nbind 127.0.0.1\nview a {\nexpr metadata('gatherer/name') startsWith 'a'\n}\nhosts {\n192.0.2.1 a.example.org b.example.org\n}\ngatherer\n}\n"+
		"example.org:0 {\nbind 127.0.0.1\nhosts {\n192.0.2.2 a.example.org b.example.org\n}\ngatherer\n}\n", func(t *testing.T, s *server) {
		before := gathered.Load()
		s.expect("a.example.org.", dns.TypeA, "NOERROR A 192.0.2.1")
		s.expect("b.example.org.", dns.TypeA, "NOERROR A 192.0.2.2")
		if got := gathered.Load() - before; got != 6 { // over UDP and TCP: one block for the first, both for the second
			t.Errorf("called %d times, want 6", got)
		}
	})
	inBothLanes(t, "example.org:0 {\nbind 127.0.0.1\nhosts {\n192.0.2.1 a.example.org\n}\ngatherer\n}\n", func(t *testing.T, s *server) {
		before := gathered.Load()
		s.expect("a.example.org.", dns.TypeA, "NOERROR A 192.0.2.1")
		if got := gathered.Load() - before; got != 2 {
			t.Errorf("called %d times, want 2", got)
		}
	})
}
