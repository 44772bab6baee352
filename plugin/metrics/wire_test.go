package metrics

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// decides is a handler that does the same for all queries.
type decides struct {
	plugin.Handler
	decide func(w *wire.Reply, q *wire.Query) wire.Outcome
}

func (d decides) WireSelf() plugin.Handler { return d }
func (d decides) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return d.decide(w, q)
}

// TestBlocksAreRemembered has many listeners, and contexts that a plugin further up makes anew for each query.
func TestBlocksAreRemembered(t *testing.T) {
	met := New("localhost:0")
	met.AddZone("example.org.")
	var contexts []context.Context
	for i := range 100 {
		server := &dnsserver.Server{Addr: fmt.Sprintf("%s%d", unusedServer(), i)}
		contexts = append(contexts, context.WithValue(t.Context(), dnsserver.Key{}, server))
	}
	first := map[*block]bool{}
	for _, ctx := range contexts {
		first[met.current().block(ctx)] = true
	}
	type key struct{}
	for _, ctx := range contexts {
		if !first[met.current().block(ctx)] || met.current().block(context.WithValue(ctx, key{}, 1)) != met.current().block(ctx) {
			t.Fatal("a block is made again")
		}
	}
	if len(first) != len(contexts) || len(met.current().known()) != len(contexts) {
		t.Errorf("%d blocks, %d are remembered", len(first), len(met.current().known()))
	}
}

func TestServeWire(t *testing.T) {
	server := unusedServer()
	ctx := context.WithValue(t.Context(), dnsserver.Key{}, &dnsserver.Server{Addr: server})
	met := New("localhost:0")
	met.AddZone("example.org.")
	out := wire.Unpack
	met.Next = decides{nil, func(w *wire.Reply, q *wire.Query) wire.Outcome {
		w.Begin(q)
		w.SetRcode(wire.NXDomain)
		w.SetWriter("file")
		return out
	}}
	serve := func(name string, loop *eventloop.Loop) {
		t.Helper()
		b, _ := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
		q, w := new(wire.Query), new(wire.Reply)
		if !q.Parse(b) {
			t.Fatal("not eligible")
		}
		w.Reset(make([]byte, 0, 512))
		if loop != nil {
			loop.Enter()
			q.SetLoop(loop)
		}
		if got := met.ServeWire(ctx, w, q); got != out {
			t.Errorf("outcome %v, want %v", got, out)
		}
		if loop != nil {
			loop.Done(1)
			loop.Leave()
		}
	}
	count := func(zone string) float64 {
		prometheus.DefaultGatherer.Gather() // takes in what lanes counted
		return testutil.ToFloat64(vars.ResponseRcode.WithLabelValues(server, zone, "", "NXDOMAIN", "file"))
	}
	loop := eventloop.New()
	serve("www.example.org.", loop) // what is not done is not counted
	serve("www.example.org.", nil)
	if n := count("example.org."); n != 0 {
		t.Errorf("%v counted before they were done", n)
	}
	out = wire.Done
	serve("www.Example.org.", loop)
	serve("www.example.org.", nil)
	serve("www.example.net.", loop)
	if a, b := count("example.org."), count("."); a != 2 || b != 1 {
		t.Errorf("%v and %v, want 2 and 1", a, b)
	}
	met.AddZone("sub.example.org.") // zones come and go while it serves
	serve("www.sub.example.org.", loop)
	met.RemoveZone("sub.example.org.")
	serve("www.sub.example.org.", loop)
	if a, b := count("sub.example.org."), count("example.org."); a != 1 || b != 3 {
		t.Errorf("%v and %v, want 1 and 3", a, b)
	}
}

func BenchmarkServeWire(b *testing.B) {
	ctx := context.WithValue(b.Context(), dnsserver.Key{}, &dnsserver.Server{Addr: unusedServer()})
	met := New("localhost:0")
	met.AddZone(".")
	met.Next = decides{nil, func(w *wire.Reply, q *wire.Query) wire.Outcome { return wire.Done }}
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	q, w, loop := new(wire.Query), new(wire.Reply), eventloop.New()
	q.Parse(packet)
	w.Reset(make([]byte, 0, 512))
	w.Begin(q)
	loop.Enter()
	q.SetLoop(loop)
	b.ReportAllocs()
	for b.Loop() {
		met.ServeWire(ctx, w, q)
	}
}

// Thousands of zones come and go, and no query has to do with all of them for that.
func TestManyZones(t *testing.T) {
	const n = 20000
	ctx := context.WithValue(t.Context(), dnsserver.Key{}, &dnsserver.Server{Addr: unusedServer()})
	met := New("localhost:0")
	met.Next = decides{nil, func(*wire.Reply, *wire.Query) wire.Outcome { return wire.Done }}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("z%d.example.org.", i))
	}
	met.ChangeZones(names, nil)
	met.ChangeZones(names[:10], names[n-10:])
	met.AddZone("last.example.org.")
	met.RemoveZone(names[0])
	if got := met.ZoneNames(); len(got) != n-10 || got[0] != names[1] || got[len(got)-1] != "last.example.org." {
		t.Errorf("%d zones, from %s to %s", len(got), got[0], got[len(got)-1])
	}
	for name, want := range map[string]string{"a.b.Z7.example.org.": "z7.example.org.", "a.z0.example.org.": ".", "last.example.org": "last.example.org."} {
		if got := met.zone(name); got != want {
			t.Errorf("%s counts as %s, want %s", name, got, want)
		}
	}
	packet, _ := new(dns.Msg).SetQuestion("www.z7.example.org.", dns.TypeA).Pack()
	q, w := new(wire.Query), new(wire.Reply)
	q.Parse(packet)
	w.Reset(make([]byte, 0, 512))
	w.Begin(q)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	met.ServeWire(ctx, w, q)
	runtime.ReadMemStats(&after)
	if made := after.Mallocs - before.Mallocs; made > n/10 {
		t.Errorf("the first query after a change made %d allocations", made)
	}
}
