package cache

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// promptly answers every A query in the lane.
type promptly struct{ plugin.Handler }

func (promptly) Name() string { return "promptly" }

func (p promptly) WireSelf() plugin.Handler { return p }

func (promptly) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	w.Begin(q)
	w.Addr(wire.Answer, q.Name(), 300, netip.AddrFrom4([4]byte{192, 0, 2, 1}))
	return wire.Done
}

// An answer is local that the plugins below had at hand, in the batch that its query came with; any other is remote.
func TestCostOfAnswers(t *testing.T) {
	loop := eventloop.New()
	defer loop.Close()
	loop.Enter()
	defer loop.Leave()
	var ended eventloop.Ending
	ended.End()
	for name, tc := range map[string]struct {
		lane    *eventloop.Loop
		awaited eventloop.Exchange
		cost    cost
	}{
		"at once":           {loop, nil, costLocal},
		"after an exchange": {loop, &ended, costRemote},
		"on a worker":       {nil, nil, costRemote},
	} {
		c := New()
		c.Next = promptly{}
		q := query(t, "www.example.org.", tc.awaited)
		q.SetLoop(tc.lane)
		q.Arrival = time.Now()
		var w wire.Reply
		w.Reset(nil)
		if out := c.ServeWire(context.Background(), &w, q); out != wire.Done {
			t.Fatalf("%s: %v", name, out)
		}
		k := c.questionOf(q)
		if e := c.positive.get(&k.key); e == nil || e.cost != tc.cost {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// questions is queries for as many names.
func questions(names int) (packets [][]byte) {
	for i := range names {
		p, _ := new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.example.org.", i), dns.TypeA).Pack()
		packets = append(packets, p)
	}
	return packets
}

// asker asks a cache in the wire lane, in memory that is used again.
type asker struct {
	*Cache
	q   wire.Query
	w   wire.Reply
	buf []byte
}

// newAsker is an asker of an empty cache for so many answers, above a plugin that answers at once.
func newAsker(capacity int) *asker {
	c, budget := New(), unbounded()
	c.Next = promptly{}
	c.prepare()
	c.stores = &stores{positive: newStore(capacity, budget, 0), negative: newStore(capacity, budget, 1), owner: c}
	return &asker{Cache: c, buf: make([]byte, 4096)}
}

func (a *asker) ask(b *testing.B, packet []byte) {
	a.q.Parse(packet)
	a.w.Reset(a.buf)
	if a.ServeWire(context.Background(), &a.w, &a.q) != wire.Done {
		b.Fatal("not answered")
	}
}

// What a miss costs that the plugin below answers at once, in a cache that is full.
func BenchmarkServeWireMiss(b *testing.B) {
	const names = 1 << 18
	packets, a, i := questions(names), newAsker(names/4), 0
	b.ReportAllocs()
	for b.Loop() {
		a.ask(b, packets[i%names])
		i++
	}
	if a.negative.len()+a.positive.len() == 0 {
		b.Fatal("nothing is kept")
	}
}

// What it costs to fill a large cache by names that nobody asked for before, with what the collector has to do meanwhile.
func BenchmarkFill(b *testing.B) {
	const names = 1 << 19
	packets := questions(names)
	b.ReportAllocs()
	for b.Loop() {
		a := newAsker(2 * names)
		for _, p := range packets {
			a.ask(b, p)
		}
		if n := a.positive.len(); n != names {
			b.Fatalf("%d of %d are kept", n, names)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/names, "ns/name")
}

// BenchmarkFull is a query to a cache that is full, and too large for the processor's caches. Half of them miss, so that
// another entry has to go.
func BenchmarkFull(b *testing.B) {
	const names = 1 << 19
	packets, a, i := questions(names), newAsker(names/2), 0
	for _, p := range packets {
		a.ask(b, p)
	}
	b.ReportAllocs()
	for b.Loop() {
		a.ask(b, packets[i%names])
		i++
	}
	if n := a.positive.len(); n != names/2 {
		b.Fatalf("%d are kept", n)
	}
}
