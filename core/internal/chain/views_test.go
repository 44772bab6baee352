package chain

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// boundedView takes queries of some clients, for some names, and of no type but A.
type boundedView struct {
	plugin.Handler
	clients []netip.Prefix
	names   [][]byte
	asked   *int
}

func (v *boundedView) Bounds() ([]netip.Prefix, [][]byte) { return v.clients, v.names }
func (v *boundedView) ViewName() string                   { return "" }
func (v *boundedView) Name() string                       { return "view" }
func (v *boundedView) WireSelf() plugin.Handler           { return v }
func (v *boundedView) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return plugin.NextWire("view", v.Handler, ctx, w, q)
}

func (v *boundedView) Filter(_ context.Context, r *request.Request) bool { panic("not of this lane") }

func (v *boundedView) FilterWire(_ context.Context, q *wire.Query) (belongs, sure bool) {
	*v.asked++
	client := q.Client.Addr().Unmap().WithZone("")
	return q.Type() == dns.TypeA &&
		(v.clients == nil || slices.ContainsFunc(v.clients, func(p netip.Prefix) bool { return p.Contains(client) })) &&
		(v.names == nil || slices.ContainsFunc(v.names, func(n []byte) bool { return string(n) == string(q.Lower()) })), true
}

// bounded is a block with such a view.
func bounded(zone string, number int, asked *int, clients []netip.Prefix, names ...string) Block {
	v := &boundedView{Handler: silent, clients: clients, asked: asked}
	for _, n := range names {
		v.names = append(v.names, wire.MustName(n))
	}
	b := blockOf(zone, v)
	*b.View, *b.Filters = fmt.Sprint(number), []FilterFunc{v.Filter}
	return b
}

func query(name string, qtype uint16, client netip.Addr) *wire.Query {
	packet, _ := new(dns.Msg).SetQuestion(name, qtype).Pack()
	q := new(wire.Query)
	q.Parse(packet)
	q.Client = netip.AddrPortFrom(client, 4711)
	return q
}

// TestIndexOfViews: the index leads to the block that asking all of them in their order finds.
func TestIndexOfViews(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	addr := func() netip.Addr {
		if r.IntN(2) == 0 {
			return netip.AddrFrom4([4]byte{10, 0, byte(r.IntN(3)), byte(r.IntN(4))})
		}
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(r.IntN(4))})
	}
	names := []string{"a.example.org.", "b.example.org.", "example.org.", "c.b.example.org."}
	skipped := 0
	for range 100 {
		asked := 0
		var blocks []Block
		for i := range 1 + r.IntN(150) {
			var clients []netip.Prefix
			if r.IntN(3) > 0 {
				clients = []netip.Prefix{}
				for range r.IntN(3) {
					a := addr()
					clients = append(clients, netip.PrefixFrom(a, a.BitLen()-r.IntN(3)*r.IntN(9)))
				}
			}
			var own []string
			for range r.IntN(3) * r.IntN(2) {
				own = append(own, names[r.IntN(len(names))])
			}
			zone := []string{"example.org.", "b.example.org.", "."}[r.IntN(3)]
			blocks = append(blocks, bounded(zone, i, &asked, clients, own...))
		}
		c := build(t, Options{}, blocks...)
		for range 100 {
			q := query(names[r.IntN(len(names))], []uint16{dns.TypeA, dns.TypeMX}[r.IntN(2)], addr())
			var want *block
			for _, zone := range []string{q1(q), "example.org.", "."} {
				for _, b := range c.blocks {
					if want == nil && b.Zone == zone && wire.Below(q.Lower(), wire.MustName(zone)) {
						if ok, _ := c.router.filter(b, q); ok {
							want = b
						}
					}
				}
			}
			asked = 0
			got, sure := c.router.find(q)
			if got != want || !sure {
				t.Fatalf("%s from %s: %v, want %v", wire.Text(q.Lower()), q.Client, got, want)
			}
			skipped += len(c.blocks) - asked
		}
	}
	if skipped < 100_000 {
		t.Errorf("only %d views were not asked", skipped)
	}
}

// q1 is the longest of the zones of the test that a query can be for.
func q1(q *wire.Query) string {
	if wire.Below(q.Lower(), wire.MustName("b.example.org.")) {
		return "b.example.org."
	}
	return "example.org."
}

// A filter that is no view's may stand in the place of one: then the view's bounds say nothing.
func TestBoundsOfOtherFilters(t *testing.T) {
	asked := 0
	var blocks []Block
	for i := range 10 {
		blocks = append(blocks, bounded(".", i, &asked, []netip.Prefix{}))
	}
	*blocks[7].Filters = append(*blocks[7].Filters, func(context.Context, *request.Request) bool { return true })
	c := build(t, Options{}, blocks...)
	if _, sure := c.router.find(query("a.", dns.TypeA, netip.MustParseAddr("192.0.2.1"))); sure || asked != 0 {
		t.Errorf("sure: %v, %d views were asked", sure, asked)
	}
}

// BenchmarkViews finds the last of many views, each for a client's address.
func BenchmarkViews(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			asked := 0
			var blocks []Block
			for i := range n {
				a := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
				blocks = append(blocks, bounded(".", i, &asked, []netip.Prefix{netip.PrefixFrom(a, 32)}))
			}
			c := build(b, Options{}, blocks...)
			q := query("www.example.org.", dns.TypeA, netip.AddrFrom4([4]byte{10, 0, byte((n - 1) >> 8), byte(n - 1)}))
			b.ReportAllocs()
			for b.Loop() {
				if found, _ := c.router.find(q); found == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}
