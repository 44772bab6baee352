package coretest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Handler is a plugin made of a function, of which nothing else is known.
type Handler plugin.HandlerFunc

// Name and ServeDNS implement plugin.Handler.
func (Handler) Name() string { return "handler" }
func (h Handler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return h(ctx, w, r)
}

// Echo answers with one address.
var Echo Handler = func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	header := dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}
	m.Answer = []dns.RR{&dns.A{Hdr: header, A: net.IPv4(192, 0, 2, 1)}}
	return 0, w.WriteMsg(m)
}

// Gate answers as Echo does; queries whose names begin with "slow" wait until it is opened.
type Gate struct {
	Waiting atomic.Int32 // how many wait, or have waited
	opened  chan struct{}
	Open    func()
}

// NewGate makes a Gate that is open when the test ends.
func NewGate(t testing.TB) *Gate {
	g := &Gate{opened: make(chan struct{})}
	g.Open = sync.OnceFunc(func() { close(g.opened) })
	t.Cleanup(g.Open)
	return g
}

// Name and ServeDNS implement plugin.Handler.
func (g *Gate) Name() string { return "gate" }
func (g *Gate) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if strings.HasPrefix(r.Question[0].Name, "slow") {
		g.Waiting.Add(1)
		<-g.opened
	}
	return Echo(ctx, w, r)
}

// Holds waits until n queries have come to the gate.
func (g *Gate) Holds(t testing.TB, n int32) {
	t.Helper()
	eventually.Holds(t, fmt.Sprintf("%d queries are at work", n), func() bool { return g.Waiting.Load() == n })
}

// UntilCancelled waits until the context of its query ends: began and cancelled tell of it.
func UntilCancelled(began chan struct{}, cancelled chan error) Handler {
	return func(ctx context.Context, _ dns.ResponseWriter, _ *dns.Msg) (int, error) {
		began <- struct{}{}
		<-ctx.Done()
		cancelled <- ctx.Err()
		return dns.RcodeServerFailure, nil
	}
}

// Lane does in the wire lane what the name's first label says, and tells in its answers by which way it came: the last
// octet is 1 in the wire lane, 2 there when it waited, and 3 in the message lane.
type Lane struct {
	Runs    atomic.Int64
	Held    chan struct{} // what queries of "hold" wait for
	Holding atomic.Int64  // queries of "hold" that were parked
}

// Name and ServeDNS implement plugin.Handler, WireSelf says that its wire lane is its own.
func (h *Lane) Name() string             { return "lane" }
func (h *Lane) WireSelf() plugin.Handler { return h }
func (h *Lane) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Question[0].Name == "panic." {
		panic("as asked")
	}
	m := new(dns.Msg).SetReply(r)
	header := dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}
	m.Answer = []dns.RR{&dns.A{Hdr: header, A: net.IPv4(192, 0, 2, 3)}}
	return 0, w.WriteMsg(m)
}

// brief is an exchange that ends by itself, soon.
type brief struct{ _ byte }

func (*brief) Then(r eventloop.Resumer) { time.AfterFunc(20*time.Millisecond, r.Resume) }

// untilClosed is an exchange that ends when a test says so.
type untilClosed struct{ c <-chan struct{} }

func (u *untilClosed) Then(r eventloop.Resumer) {
	go func() {
		<-u.c
		r.Resume()
	}()
}

// ServeWire implements plugin.WireHandler.
func (h *Lane) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	h.Runs.Add(1)
	if ctx.Value(plugin.ServerKey{}) == nil || ctx.Value(plugin.LoopKey{}) != 0 || ctx.Value(plugin.ViewKey{}) != "" {
		panic("context")
	}
	if (q.Loop() == nil) != q.MayBlock() {
		panic("a query that may wait is on a loop")
	}
	label := string(wire.FirstLabel(q.Lower()))
	if out, decided := h.detour(label, w, q); decided {
		return out
	}
	w.Begin(q)
	switch {
	case label == "local":
		w.Addr(wire.Answer, q.Name(), 60, q.Local.Addr())
	case label == "client":
		w.Addr(wire.Answer, q.Name(), 60, q.Client.Addr())
	case label == "long":
		for i := range 200 {
			w.Addr(wire.Answer, q.Name(), 60, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
		}
	case q.Awaited() != nil || q.MayBlock():
		w.Addr(wire.Answer, q.Name(), 60, netip.AddrFrom4([4]byte{192, 0, 2, 2}))
	default:
		w.Addr(wire.Answer, q.Name(), 60, netip.AddrFrom4([4]byte{192, 0, 2, 1}))
	}
	return wire.Done
}

// detour is what becomes of queries that are not simply answered.
func (h *Lane) detour(label string, w *wire.Reply, q *wire.Query) (out wire.Outcome, decided bool) {
	first := q.Awaited() == nil
	switch {
	case label == "unpack", label == "parkunpack" && !first:
		return wire.Unpack, true
	case label == "panic":
		panic("as asked")
	case label == "drop":
		w.Drop()
		return wire.Done, true
	case label == "fail":
		w.Fail(wire.Refused, errors.New("as asked"))
		return wire.Done, true
	case label == "block" && !q.MayBlock(), label == "parkblock" && !first && !q.MayBlock():
		return wire.Block, true
	case label == "hold" && first:
		q.Await(&untilClosed{h.Held})
		h.Holding.Add(1)
		return wire.Park, true
	case strings.HasPrefix(label, "park") && first:
		q.Await(new(brief))
		return wire.Park, true
	case label == "parksame": // never ends by the same exchange
		return wire.Park, true
	}
	return 0, false
}

// Who answers with the client's address: in the message lane if the name begins with "u", where it may wait if with
// "b", else in the wire lane.
type Who struct{}

// Name and ServeDNS implement plugin.Handler, WireSelf says that its wire lane is its own.
func (Who) Name() string               { return "who" }
func (h Who) WireSelf() plugin.Handler { return h }
func (Who) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	header := dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}
	m.Answer = []dns.RR{&dns.A{Hdr: header, A: wire.AddrOf(w.RemoteAddr()).AsSlice()}}
	return 0, w.WriteMsg(m)
}

// ServeWire implements plugin.WireHandler.
func (Who) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	switch wire.FirstLabel(q.Lower())[0] {
	case 'u':
		return wire.Unpack
	case 'b':
		if !q.MayBlock() {
			return wire.Block
		}
	}
	w.Begin(q)
	w.Addr(wire.Answer, q.Name(), 60, q.Client.Addr())
	return wire.Done
}
