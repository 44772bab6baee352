package chain

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// viewHandler takes queries of one type in both lanes, except that it does not know of TXT queries whether it takes
// them before they are unpacked: it takes none.
type viewHandler struct {
	plugin.Handler
	name  string
	qtype uint16
}

func (v *viewHandler) ViewName() string { return v.name }
func (v *viewHandler) Filter(_ context.Context, r *request.Request) bool {
	return r.QType() == v.qtype
}
func (v *viewHandler) FilterWire(_ context.Context, q *wire.Query) (belongs, sure bool) {
	return q.Type() == v.qtype, q.Type() != dns.TypeTXT
}
func (v *viewHandler) Name() string             { return "view" }
func (v *viewHandler) WireSelf() plugin.Handler { return v }
func (v *viewHandler) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return plugin.NextWire("view", v.Handler, ctx, w, q)
}

func viewBlock(zone, name string, qtype uint16, wrap func(*viewHandler) plugin.Handler) Block {
	v := &viewHandler{name: name, qtype: qtype}
	b := blockOf(zone, wrap(v))
	*b.View, *b.Filters = name, []FilterFunc{v.Filter}
	return b
}

func itself(v *viewHandler) plugin.Handler { return v }

// overriding has another Filter than what it embeds, and so no FilterWire.
type overriding struct{ *viewHandler }

func (overriding) Filter(context.Context, *request.Request) bool { return true }

func TestViewsInTheWireLane(t *testing.T) {
	group := []Block{
		viewBlock("sub.example.org.", "a", dns.TypeA, itself),
		viewBlock("example.org.", "mx", dns.TypeMX, itself),
		viewBlock("example.org.", "odd", dns.TypeSRV, func(v *viewHandler) plugin.Handler { return overriding{v} }),
		blockOf("example.org.", silent),
		viewBlock("ds.example.org.", "ds", dns.TypeDS, itself),
		viewBlock("net.", "only", dns.TypeMX, itself),
	}
	*group[3].View = "rest"
	c := build(t, Options{}, group...)
	for _, tc := range []struct {
		name  string
		qtype uint16
		want  string
		sure  bool
	}{
		{"www.sub.example.org.", dns.TypeA, "a", true},
		{"www.sub.example.org.", dns.TypeMX, "mx", true},
		{"www.sub.example.org.", dns.TypeTXT, "", false},
		{"www.example.org.", dns.TypeMX, "mx", true},
		{"www.example.org.", dns.TypeA, "", false}, // the odd one stands before the rest
		{"ds.example.org.", dns.TypeDS, "", false},
		{"www.net.", dns.TypeMX, "only", true},
		{"www.net.", dns.TypeA, "nobody", true},
		{"www.net.", dns.TypeTXT, "", false},
	} {
		packet, _ := new(dns.Msg).SetQuestion(tc.name, tc.qtype).Pack()
		var q wire.Query
		q.Parse(packet)
		b, sure := c.router.find(&q)
		got := "nobody"
		if b != nil {
			got = *b.View
		}
		if sure != tc.sure || sure && got != tc.want {
			t.Errorf("%s %s: got %q, sure %v", tc.name, dns.Type(tc.qtype), got, sure)
		}
	}
}

// A DS query goes to the block above, and only else to its own; what one of them does not know, the other does not
// tell.
func TestViewOfParent(t *testing.T) {
	unsure := viewBlock("ds.example.org.", "ds", dns.TypeDS, func(v *viewHandler) plugin.Handler { return overriding{v} })
	c := build(t, Options{}, unsure, viewBlock("example.org.", "mx", dns.TypeMX, itself))
	packet, _ := new(dns.Msg).SetQuestion("ds.example.org.", dns.TypeDS).Pack()
	var q wire.Query
	q.Parse(packet)
	if b, sure := c.router.find(&q); sure {
		t.Errorf("got %v", b)
	}
}

func BenchmarkFindView(b *testing.B) {
	c := build(b, Options{}, viewBlock(".", "mx", dns.TypeMX, itself), viewBlock(".", "a", dns.TypeA, itself))
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	var q wire.Query
	q.Parse(packet)
	b.ReportAllocs()
	for b.Loop() {
		if found, sure := c.router.find(&q); found == nil || !sure {
			b.Fatal("not found")
		}
	}
}
