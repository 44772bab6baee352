package chain

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// changer changes the question, as rewrite does, for a plugin that panics.
type changer struct{ next plugin.Handler }

func (changer) Name() string               { return "changer" }
func (c changer) WireSelf() plugin.Handler { return c }
func (c changer) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	r.Question[0].Name = "other."
	return c.next.ServeDNS(ctx, w, r)
}
func (c changer) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	q.SetName([]byte("\x05other\x00"))
	return plugin.NextWire("changer", c.next, ctx, w, q)
}

// TestPanicBelowChange has the reply to a query that a plugin changed before another one panics: it is one to what the
// client asked, who would not take another.
func TestPanicBelowChange(t *testing.T) {
	c := chainOf(t, func(plugin.Handler) plugin.Handler { return changer{inBoth{panics}} })
	w := new(foreign)
	c.ServeDNS(t.Context(), w, asked())
	m, out := inLane(t, c, true)
	for lane, got := range map[string]*dns.Msg{"message": w.sent[0], "wire": m} {
		if got.Rcode != dns.RcodeServerFailure || got.Question[0].Name != asked().Question[0].Name {
			t.Errorf("%s lane, outcome %v: got %v", lane, out, got)
		}
	}
}
