package chain

import (
	"context"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

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

// fragile answers in both lanes, but panics in the wire lane at what is asked with a DO bit, and its view at TXT.
type fragile struct{ wired *int }

func (fragile) Name() string               { return "fragile" }
func (f fragile) WireSelf() plugin.Handler { return f }
func (f fragile) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return dns.RcodeNameError, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNameError))
}
func (f fragile) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	*f.wired++
	if q.DO() {
		panic("as asked")
	}
	w.Begin(q)
	w.SetRcode(dns.RcodeNameError)
	return wire.Done
}
func (fragile) ViewName() string                              { return "fragile" }
func (fragile) Filter(context.Context, *request.Request) bool { return true }
func (fragile) FilterWire(_ context.Context, q *wire.Query) (belongs, sure bool) {
	if q.Type() == dns.TypeTXT {
		panic("as asked")
	}
	return true, true
}

// TestPanicLeavesWireLane has a plugin panic in the wire lane, or a view: that query fails, and those after it get their
// answers in the message lane. Other blocks stay where they are, and it is said once.
func TestPanicLeavesWireLane(t *testing.T) {
	for name, odd := range map[string]*dns.Msg{
		"plugin": asked(withEDNS),
		"view":   asked(func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeTXT }),
	} {
		t.Run(name, func(t *testing.T) {
			log := logtest.Capture(t)
			wired, beside := 0, 0
			f := fragile{&wired}
			b := blockOf("example.org.", f)
			*b.View, *b.Filters = f.ViewName(), []FilterFunc{f.Filter}
			c := build(t, Options{}, b, blockOf("example.net.", fragile{&beside}))
			if m, out := serveWire(t, c, asked()); out != wire.Done || m.Rcode != dns.RcodeNameError {
				t.Fatalf("before: %v, %v", out, m)
			}
			if m, out := serveWire(t, c, odd); out != wire.Done || m.Rcode != dns.RcodeServerFailure {
				t.Fatalf("the query itself: %v, %v", out, m)
			}
			before := wired
			for _, r := range []*dns.Msg{asked(), odd, odd} {
				if m, out := serveWire(t, c, r); out != wire.Unpack {
					t.Errorf("afterwards: %v, %v", out, m)
				}
				w := new(foreign)
				c.ServeDNS(t.Context(), w, r.Copy())
				if len(w.sent) != 1 || w.sent[0].Rcode != dns.RcodeNameError {
					t.Errorf("as a message: %v", w.sent)
				}
			}
			if wired != before {
				t.Error("the plugin was asked in the wire lane again")
			}
			if _, out := serveWire(t, c, asked(func(m *dns.Msg) { m.Question[0].Name = "example.net." })); out != wire.Done || beside != 1 {
				t.Errorf("another block: %v", out)
			}
			if n := strings.Count(log.String(), `zone "example.org." is served without the wire lane from now on`); n != 1 {
				t.Errorf("told %d times: %s", n, log)
			}
		})
	}
}
