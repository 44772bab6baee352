package chain

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// viewHandler takes queries of one type in both lanes, except that it does not know of TXT queries whether it takes them
// before they are unpacked: it takes none.
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

func viewConfig(zone, name string, qtype uint16, wrap func(*viewHandler) plugin.Handler) *Config {
	v := &viewHandler{name: name, qtype: qtype}
	cfg := block1(zone, nil)
	cfg.Plugin = []plugin.Plugin{func(plugin.Handler) plugin.Handler { return wrap(v) }}
	cfg.ViewName, cfg.FilterFuncs = name, []FilterFunc{v.Filter}
	return cfg
}

func itself(v *viewHandler) plugin.Handler { return v }

// overriding has another Filter than what it embeds, and so no FilterWire.
type overriding struct{ *viewHandler }

func (overriding) Filter(context.Context, *request.Request) bool { return true }

func TestViewsInTheWireLane(t *testing.T) {
	group := []*Config{
		viewConfig("sub.example.org.", "a", dns.TypeA, itself),
		viewConfig("example.org.", "mx", dns.TypeMX, itself),
		viewConfig("example.org.", "odd", dns.TypeSRV, func(v *viewHandler) plugin.Handler { return overriding{v} }),
		block1("example.org.", echo),
		viewConfig("ds.example.org.", "ds", dns.TypeDS, itself),
		viewConfig("net.", "only", dns.TypeMX, itself),
	}
	group[3].ViewName = "rest"
	s, err := NewServer("dns://127.0.0.1:0", group)
	if err != nil {
		t.Fatal(err)
	}
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
		b, sure := s.router.find(&q)
		got := "nobody"
		if b != nil {
			got = b.ViewName
		}
		if sure != tc.sure || sure && got != tc.want {
			t.Errorf("%s %s: got %q, sure %v", tc.name, dns.Type(tc.qtype), got, sure)
		}
	}
}

// A DS query goes to the block above, and only else to its own; what one of them does not know, the other does not tell.
func TestViewOfParent(t *testing.T) {
	unsure := viewConfig("ds.example.org.", "ds", dns.TypeDS, func(v *viewHandler) plugin.Handler { return overriding{v} })
	s, err := NewServer("dns://127.0.0.1:0", []*Config{unsure, viewConfig("example.org.", "mx", dns.TypeMX, itself)})
	if err != nil {
		t.Fatal(err)
	}
	packet, _ := new(dns.Msg).SetQuestion("ds.example.org.", dns.TypeDS).Pack()
	var q wire.Query
	q.Parse(packet)
	if b, sure := s.router.find(&q); sure {
		t.Errorf("got %v", b)
	}
}

func BenchmarkFindView(b *testing.B) {
	s, err := NewServer("dns://127.0.0.1:0", []*Config{viewConfig(".", "mx", dns.TypeMX, itself), viewConfig(".", "a", dns.TypeA, itself)})
	if err != nil {
		b.Fatal(err)
	}
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	var q wire.Query
	q.Parse(packet)
	b.ReportAllocs()
	for b.Loop() {
		if found, sure := s.router.find(&q); found == nil || !sure {
			b.Fatal("not found")
		}
	}
}
