package chain

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// swift is somebody's plugin that passes on, and may say that it is prompt.
type swift struct {
	next   plugin.Handler
	prompt bool
	calls  int
	serve  plugin.HandlerFunc // instead of passing on
}

func (s *swift) Name() string { return "swift" }
func (s *swift) Prompt() bool { return s.prompt }
func (s *swift) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	s.calls++
	if s.serve != nil {
		return s.serve(ctx, w, r)
	}
	return plugin.NextOrFailure(s.Name(), s.next, ctx, w, r)
}

// address answers from a Lane, as sources of ours do.
type address struct{ prompt bool }

func (address) Name() string   { return "address" }
func (a address) Prompt() bool { return a.prompt }
func (a address) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	lane, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	defer lane.Free()
	lane.Reply.Begin(&lane.Query)
	lane.Reply.Addr(wire.Answer, lane.Query.Name(), 60, netip.MustParseAddr("192.0.2.7"))
	return lane.Write()
}

// heir embeds a prompt plugin and overrides what that says it of.
type heir struct{ plugin.WireHandler }

func (heir) Name() string { return "heir" }
func (heir) Prompt() bool { return true }
func (heir) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return 0, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNameError))
}

// inLane serves a query for www.example.org in the lane.
func inLane(t *testing.T, c *Chain, plain bool) (m *dns.Msg, out wire.Outcome) {
	t.Helper()
	r := new(dns.Msg).SetQuestion("WWW.example.org.", dns.TypeA).SetEdns0(1232, true)
	packet, err := r.Pack()
	if err != nil {
		t.Fatal(err)
	}
	var q wire.Query
	if !q.Parse(packet) {
		t.Fatal("not eligible")
	}
	q.Client, q.Local = netip.MustParseAddrPort("192.0.2.1:4711"), netip.MustParseAddrPort("192.0.2.53:53")
	q.Plain = plain
	w := new(wire.Reply)
	w.Reset(make([]byte, 0, 512))
	reply, out := c.ServeWire(w, &q)
	if reply != nil {
		m = new(dns.Msg)
		if err := m.Unpack(reply); err != nil {
			t.Fatal(err)
		}
		if m.Id != r.Id || !m.RecursionDesired || m.Question[0] != r.Question[0] || m.IsEdns0() == nil {
			t.Errorf("no reply to the query: %v", m)
		}
	}
	return m, out
}

func TestPromptIsServedInTheLane(t *testing.T) {
	odd := errors.New("odd")
	for name, tc := range map[string]struct {
		swift   swift
		source  plugin.Handler // behind it, if any
		far     bool           // more is known of the query than the lane can tell
		out     wire.Outcome
		answers int
		rcode   int
		writer  string
		err     error
		silent  bool
	}{
		"passes on to a source":   {swift{prompt: true}, address{true}, false, wire.Done, 1, 0, "address", nil, false},
		"the source may wait":     {swift{prompt: true}, address{false}, false, wire.Unpack, 0, 0, "", nil, false},
		"may wait itself":         {swift{}, address{true}, false, wire.Unpack, 0, 0, "", nil, false},
		"over TLS":                {swift{prompt: true}, address{true}, true, wire.Unpack, 0, 0, "", nil, false},
		"no next one":             {swift: swift{prompt: true}, out: wire.Done, rcode: dns.RcodeServerFailure},
		"an heir of a prompt one": {swift{prompt: true}, heir{}, false, wire.Unpack, 0, 0, "", nil, false},
		"refuses with an error": {swift: swift{prompt: true, serve: func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
			return dns.RcodeRefused, odd
		}}, out: wire.Done, rcode: dns.RcodeRefused, err: odd},
		"writes a message": {swift: swift{prompt: true, serve: func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			if a := w.RemoteAddr().String() + " " + w.LocalAddr().String(); a != "192.0.2.1:4711 192.0.2.53:53" {
				return dns.RcodeServerFailure, fmt.Errorf("addresses %s", a)
			}
			m := new(dns.Msg).SetReply(r)
			m.Rcode = dns.RcodeNameError
			return m.Rcode, w.WriteMsg(m)
		}}, out: wire.Done, rcode: dns.RcodeNameError, writer: "swift"},
		"writes bytes": {swift: swift{prompt: true, serve: func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			b, _ := new(dns.Msg).SetRcode(r, dns.RcodeYXDomain).Pack()
			_, err := w.Write(b)
			return 0, err
		}}, out: wire.Done, rcode: dns.RcodeYXDomain, writer: "swift"},
		"is silent": {swift: swift{prompt: true, serve: func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
			return 0, nil
		}}, out: wire.Done, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			mine := tc.swift
			var above witness
			links := []plugin.Plugin{func(next plugin.Handler) plugin.Handler {
				above.next = next
				return &above
			}, func(next plugin.Handler) plugin.Handler {
				mine.next = next
				return &mine
			}}
			switch source := tc.source.(type) {
			case heir:
				links = append(links, func(plugin.Handler) plugin.Handler { return heir{blocker{}} })
			case nil:
			default:
				links = append(links, func(plugin.Handler) plugin.Handler { return source })
			}
			m, out := inLane(t, chainOf(t, links...), !tc.far)
			if out != tc.out {
				t.Fatalf("outcome %v, want %v", out, tc.out)
			}
			if out != wire.Done {
				if mine.calls != 0 {
					t.Error("was called")
				}
				return
			}
			if mine.calls != 1 {
				t.Errorf("called %d times", mine.calls)
			}
			if tc.silent != (m == nil) {
				t.Fatalf("replied %v", m)
			}
			if m != nil && (m.Rcode != tc.rcode || len(m.Answer) != tc.answers) {
				t.Errorf("got %v", m)
			}
			if above.writer != tc.writer || tc.err != nil && !errors.Is(above.err, tc.err) {
				t.Errorf("writer %q, error %v", above.writer, above.err)
			}
		})
	}
}

// witness stands above and learns what was decided.
type witness struct {
	plainHandler
	next   plugin.Handler
	err    error
	writer string
}

func (*witness) Name() string               { return "witness" }
func (w *witness) WireSelf() plugin.Handler { return w }
func (w *witness) ServeWire(ctx context.Context, r *wire.Reply, q *wire.Query) wire.Outcome {
	out := plugin.NextWire(w.Name(), w.next, ctx, r, q)
	w.err, w.writer = r.Err(), r.Writer()
	return out
}

// blocker has a wire lane of its own.
type blocker struct{}

func (blocker) Name() string                                                        { return "blocker" }
func (b blocker) WireSelf() plugin.Handler                                          { return b }
func (blocker) Prompt() bool                                                        { return true }
func (blocker) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return 0, nil }
func (blocker) ServeWire(_ context.Context, w *wire.Reply, _ *wire.Query) wire.Outcome {
	w.Drop()
	return wire.Done
}

// A message that is used again is as fresh as a new one.
func TestPromptSeesFreshMessages(t *testing.T) {
	var seen []string
	mine := &swift{prompt: true, serve: func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		seen = append(seen, r.String())
		r.Question[0].Name, r.Id, r.Extra = "changed.", 0, nil
		r.CheckingDisabled, r.Answer = true, []dns.RR{new(dns.A)}
		return dns.RcodeRefused, nil
	}}
	c := chainOf(t, func(plugin.Handler) plugin.Handler { return mine })
	packet, _ := new(dns.Msg).SetQuestion("example.org.", dns.TypeA).SetEdns0(1232, true).Pack()
	for range 3 {
		var q wire.Query
		q.Parse(packet)
		q.Plain = true
		w := new(wire.Reply)
		w.Reset(nil)
		if _, out := c.ServeWire(w, &q); out != wire.Done {
			t.Fatal(out)
		}
	}
	if seen = slices.Compact(seen); len(seen) != 1 {
		t.Errorf("saw different messages: %q", seen)
	}
}

func BenchmarkPrompt(b *testing.B) {
	c := chainOf(b, func(next plugin.Handler) plugin.Handler { return &swift{prompt: true, next: next} },
		func(plugin.Handler) plugin.Handler { return address{true} })
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	var q wire.Query
	var w wire.Reply
	buf := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		q.Parse(packet)
		q.Plain = true
		w.Reset(buf)
		if _, out := c.ServeWire(&w, &q); out != wire.Done {
			b.Fatal(out)
		}
	}
}
