package cache

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// origin answers in both lanes, as a resolver or as one who is none.
type origin struct{ resolver bool }

func (*origin) Name() string               { return "origin" }
func (o *origin) WireSelf() plugin.Handler { return o }

func (o *origin) answer(w *wire.Reply, q *wire.Query) {
	w.Begin(q)
	w.Record(wire.Answer, q.Name(), wire.TypeA, wire.ClassIN, 300, []byte{192, 0, 2, 1})
	w.SetNonAuthoritative(o.resolver)
}

func (o *origin) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	o.answer(w, q)
	return wire.Done
}

func (o *origin) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	a, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	defer a.Free()
	o.answer(&a.Reply, &a.Query)
	return a.Write()
}

// Hits have AA, but for what a resolver has found out: that never has it.
func TestAAOfHits(t *testing.T) {
	for _, resolver := range []bool{false, true} {
		for _, lane := range []string{"wire", "message"} {
			c := New()
			c.Next = &origin{resolver}
			for i, want := range []bool{false, !resolver} {
				m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
				var aa bool
				if lane == "wire" {
					packet, _ := m.Pack()
					var q wire.Query
					var w wire.Reply
					w.Reset(nil)
					if !q.Parse(packet) || c.ServeWire(context.Background(), &w, &q) != wire.Done || w.Count(wire.Answer) != 1 {
						t.Fatal("no answer")
					}
					aa = w.Flag(wire.FlagAA)
				} else {
					w := &lastWriter{}
					if _, err := c.ServeDNS(context.Background(), w, m); err != nil || len(w.last.Answer) != 1 {
						t.Fatalf("no answer: %v", err)
					}
					aa = w.last.Authoritative
				}
				if aa != want {
					t.Errorf("resolver %v, %s lane, query %d: AA %v", resolver, lane, i, aa)
				}
			}
		}
	}
}

// lastWriter keeps the last message.
type lastWriter struct {
	test.ResponseWriter
	last *dns.Msg
}

func (w *lastWriter) WriteMsg(m *dns.Msg) error { w.last = m; return nil }
