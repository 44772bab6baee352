package loop

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// broken is whose queries are refused, because they are ours that come back.
type broken struct {
	senders atomic.Pointer[[]netip.Addr] // nil if no loop is known
	refused atomic.Uint64
}

// set makes those of the carriers the senders, or who, if there are none.
func (b *broken) set(carriers []carrier, who netip.Addr) {
	var senders []netip.Addr
	for _, c := range carriers {
		if !slices.Contains(senders, c.by.addr) {
			senders = append(senders, c.by.addr)
		}
	}
	if len(senders) == 0 {
		senders = append(senders, who)
	}
	b.senders.Store(&senders)
}

// has reports whether queries of addr are refused.
func (b *broken) has(addr netip.Addr) bool {
	senders := b.senders.Load()
	return senders != nil && slices.Contains(*senders, addr.WithZone(""))
}

// text is the senders.
func (b *broken) text() string {
	var all []string
	for _, a := range *b.senders.Load() {
		all = append(all, a.String())
	}
	return strings.Join(all, ", ")
}

// gate stands before all other plugins of a block whose loops are broken: were queries refused further down, they would first join those
// for the same name that wait in the cache, for an answer that waits for them.
type gate struct {
	Next plugin.Handler
	loop *Loop
}

// Name is a name of its own, so that the block's loop is found by its.
func (g *gate) Name() string { return "loop_break" }

// WireSelf returns g.
func (g *gate) WireSelf() plugin.Handler { return g }

// Prompt implements plugin.Prompt.
func (g *gate) Prompt() bool { return true }

// ServeDNS refuses a query that has come back, but for those by which a loop is found.
func (g *gate) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if !g.loop.broken.has(wire.PeerOf(w.RemoteAddr(), nil).Client.Addr()) || len(r.Question) > 0 && r.Question[0].Qtype == dns.TypeHINFO && g.loop.knows(r.Question[0].Name) {
		return plugin.NextOrFailure(g.Name(), g.Next, ctx, w, r)
	}
	g.loop.broken.refused.Add(1)
	return dns.RcodeRefused, nil
}

// ServeWire does the same.
func (g *gate) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	switch {
	case !g.loop.broken.has(q.Client.Addr()):
		return plugin.NextWire(g.Name(), g.Next, ctx, w, q)
	case q.Type() == dns.TypeHINFO:
		return wire.Unpack
	}
	g.loop.broken.refused.Add(1)
	w.Fail(wire.Refused, nil)
	return wire.Done
}

// knows reports whether a name is one by which loops are found.
func (l *Loop) knows(name string) bool {
	lower := dns.CanonicalName(name)
	l.RLock()
	defer l.RUnlock()
	return lower == l.qname || l.traces[lower] != nil
}
