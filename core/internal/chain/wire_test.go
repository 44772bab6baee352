package chain

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// decides is a handler of the wire lane made of a function.
type decides struct {
	decide func(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome
}

func (decides) Name() string               { return "decides" }
func (h decides) WireSelf() plugin.Handler { return h }
func (h decides) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return h.decide(ctx, w, q)
}
func (decides) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return 0, nil }

// serveWire serves r in the wire lane.
func serveWire(t *testing.T, c *Chain, r *dns.Msg) (m *dns.Msg, out wire.Outcome) {
	t.Helper()
	b, err := r.Pack()
	if err != nil {
		t.Fatal(err)
	}
	var q wire.Query
	if !q.Parse(b) {
		t.Fatal("not eligible")
	}
	q.Client, q.Arrival = netip.MustParseAddrPort("192.0.2.1:4711"), time.Now()
	w := new(wire.Reply)
	w.Reset(nil)
	packet, out := c.ServeWire(w, &q)
	if packet == nil {
		return nil, out
	}
	m = new(dns.Msg)
	if err := m.Unpack(packet); err != nil {
		t.Fatalf("%x: %v", packet, err)
	}
	if m.Id != r.Id || !m.Response || (m.IsEdns0() != nil) != (r.IsEdns0() != nil) {
		t.Errorf("no reply to the query: %v", m)
	}
	return m, out
}

// What a chain decides in the wire lane, and what the client gets.
func TestServeWire(t *testing.T) {
	tell := fmt.Errorf("as asked: %w", explained{errors.New("inside")})
	fail := func(rcode int, err error) func(*wire.Reply, *wire.Query) wire.Outcome {
		return func(w *wire.Reply, _ *wire.Query) wire.Outcome {
			w.Fail(rcode, err)
			return wire.Done
		}
	}
	out := func(o wire.Outcome) func(*wire.Reply, *wire.Query) wire.Outcome {
		return func(*wire.Reply, *wire.Query) wire.Outcome { return o }
	}
	for _, tc := range []struct {
		name   string
		decide func(*wire.Reply, *wire.Query) wire.Outcome
		out    wire.Outcome
		rcode  int // -1: no reply
		told   bool
	}{
		{"answers", func(w *wire.Reply, q *wire.Query) wire.Outcome {
			w.Begin(q)
			w.SetRcode(dns.RcodeNameError)
			return wire.Done
		}, wire.Done, dns.RcodeNameError, false},
		{"drops", func(w *wire.Reply, _ *wire.Query) wire.Outcome { w.Drop(); return wire.Done }, wire.Done, -1, false},
		{"says that it has written", fail(dns.RcodeNameError, nil), wire.Done, -1, false},
		{"SERVFAIL", fail(dns.RcodeServerFailure, nil), wire.Done, dns.RcodeServerFailure, false},
		{"REFUSED", fail(dns.RcodeRefused, errors.New("as asked")), wire.Done, dns.RcodeRefused, false},
		{"tells", fail(dns.RcodeServerFailure, tell), wire.Done, dns.RcodeServerFailure, true},
		{"unpacks", out(wire.Unpack), wire.Unpack, -1, false},
		{"blocks", out(wire.Block), wire.Block, -1, false},
		{"parks", out(wire.Park), wire.Park, -1, false},
	} {
		self := new(int)
		b := blockOf(".", decides{func(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
			if ctx.Value(plugin.ServerKey{}) != any(self) || ctx.Value(plugin.ViewKey{}) != "v" || ctx.Value(plugin.LoopKey{}) != 0 || ctx.Value(plugin.PathKey{}) != nil {
				t.Errorf("%s: context: %v, %v, %v", tc.name, ctx.Value(plugin.ServerKey{}), ctx.Value(plugin.ViewKey{}), ctx.Value(plugin.LoopKey{}))
			}
			return tc.decide(w, q)
		}})
		*b.View = "v"
		c := build(t, Options{Self: self}, b)
		for _, r := range []*dns.Msg{asked(), asked(withEDNS)} {
			m, out := serveWire(t, c, r)
			if out != tc.out || (m != nil) != (tc.rcode >= 0) || m != nil && m.Rcode != tc.rcode {
				t.Errorf("%s: %v, %v", tc.name, out, m)
			}
			if m != nil && m.IsEdns0() != nil && (len(m.IsEdns0().Option) == 1) != tc.told {
				t.Errorf("%s: %v", tc.name, m.IsEdns0())
			}
		}
	}
}

// What needs a message is not decided on bytes.
func TestUnpacked(t *testing.T) {
	runs := 0
	h := decides{func(_ context.Context, w *wire.Reply, _ *wire.Query) wire.Outcome {
		runs++
		w.Drop()
		return wire.Done
	}}
	viewed := blockOf("view.", h)
	*viewed.Filters = []FilterFunc{func(context.Context, *request.Request) bool { return true }}
	c := build(t, Options{}, viewed, blockOf("empty."), blockOf("message.", named), blockOf("org.", h))
	option := func(o dns.EDNS0) func(*dns.Msg) {
		return func(m *dns.Msg) { m.IsEdns0().Option = append(m.IsEdns0().Option, o) }
	}
	name := func(name string) func(*dns.Msg) { return func(m *dns.Msg) { m.Question[0].Name = name } }
	for _, tc := range []struct {
		name string
		r    *dns.Msg
		want wire.Outcome
	}{
		{"plain", asked(), wire.Done},
		{"options", asked(withEDNS, cookieOf("0123456789abcdef"), option(&dns.EDNS0_PADDING{}),
			option(&dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE}), option(&dns.EDNS0_NSID{Code: dns.EDNS0NSID}),
			option(&dns.EDNS0_EXPIRE{Code: dns.EDNS0EXPIRE}), option(&dns.EDNS0_LOCAL{Code: 65001, Data: []byte{1}})), wire.Done},
		{"filters", asked(name("www.view.")), wire.Unpack},
		{"no handlers", asked(name("www.empty.")), wire.Unpack},
		{"handlers of messages only", asked(name("www.message.")), wire.Unpack},
		{"no block", asked(name("www.test.")), wire.Unpack},
	} {
		before := runs
		if m, out := serveWire(t, c, tc.r); out != tc.want || m != nil || (runs > before) != (tc.want == wire.Done) {
			t.Errorf("%s: %v, %v, %d runs", tc.name, out, m, runs-before)
		}
	}
}

// Handlers know of a query's cookie, and its reply has one.
func TestCookieInTheWireLane(t *testing.T) {
	var seen wire.CookieState
	c := build(t, Options{Finish: &reply.Finisher{Cookies: cookie.NewRing(cookie.Keys{{1}})}},
		blockOf(".", decides{func(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
			seen = q.Cookie()
			w.Begin(q)
			return wire.Done
		}}))
	m, _ := serveWire(t, c, asked(withEDNS, cookieOf("0123456789abcdef")))
	if seen != wire.CookieClient || len(m.IsEdns0().Option) != 1 {
		t.Fatalf("%s, %v", seen, m)
	}
	good := m.IsEdns0().Option[0].(*dns.EDNS0_COOKIE).Cookie
	if m, _ = serveWire(t, c, asked(withEDNS, cookieOf(good))); seen != wire.CookieValid || m.IsEdns0().Option[0].(*dns.EDNS0_COOKIE).Cookie != good {
		t.Errorf("%s, %v", seen, m)
	}
}

// embedder has a ServeDNS of its own and the rest from a handler of the wire lane.
type embedder struct{ decides }

func (embedder) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return named.serve(context.Background(), w, r)
}

// What a handler does in ServeDNS is not passed by, though it embeds one that has a wire lane.
func TestEmbeddedServeWire(t *testing.T) {
	c := build(t, Options{}, blockOf(".", embedder{decides{func(context.Context, *wire.Reply, *wire.Query) wire.Outcome {
		t.Error("the embedded handler was called")
		return wire.Unpack
	}}}))
	if c.Wire() {
		t.Error("it has a wire lane")
	}
	if m, out := serveWire(t, c, asked()); out != wire.Unpack || m != nil {
		t.Errorf("%v, %v", out, m)
	}
	w := new(foreign)
	c.ServeDNS(t.Context(), w, asked())
	if len(w.sent) != 1 || w.sent[0].Rcode != dns.RcodeNameError {
		t.Errorf("got %v", w.sent)
	}
}

// passing passes on in either lane.
type passing struct {
	next plugin.Handler
	name string
}

func (p passing) Name() string             { return p.name }
func (p passing) WireSelf() plugin.Handler { return p }
func (p passing) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return plugin.NextWire(p.name, p.next, ctx, w, q)
}
func (p passing) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(p.name, p.next, ctx, w, r)
}

// A Chain has the handlers of each block in their order, each with the next one.
func TestBuild(t *testing.T) {
	pass := func(name string) plugin.Plugin {
		return func(next plugin.Handler) plugin.Handler { return passing{next: next, name: name} }
	}
	one, two := blockOf("one."), blockOf("two.")
	one.Plugins = []plugin.Plugin{pass("a"), pass("b"), func(plugin.Handler) plugin.Handler { return named }}
	c := build(t, Options{}, one, two)
	names := ""
	for _, h := range c.Handlers(0) {
		names += h.Name() + " "
	}
	if names != "a b named " || len(c.Handlers(1)) != 0 || !c.Wire() {
		t.Errorf("handlers %s and %v, wire lane %t", names, c.Handlers(1), c.Wire())
	}
	w := new(foreign)
	c.ServeDNS(t.Context(), w, asked(func(m *dns.Msg) { m.Question[0].Name = "www.one." }))
	if len(w.sent) != 1 || w.sent[0].Rcode != dns.RcodeNameError {
		t.Errorf("got %v", w.sent)
	}
	if m, out := serveWire(t, c, asked(func(m *dns.Msg) { m.Question[0].Name = "www.one." })); out != wire.Unpack || m != nil {
		t.Errorf("%v, %v: the last one needs a message", out, m)
	}
	if build(t, Options{}, two).Wire() || build(t, Options{}, blockOf(".", named)).Wire() {
		t.Error("a wire lane without handlers that have one")
	}
	if _, err := Build(Options{}, []Block{blockOf("bad..zone.")}); err == nil {
		t.Error("a zone that is no name is no error")
	}
}
