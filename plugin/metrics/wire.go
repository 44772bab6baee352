package metrics

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// block is a server block in which a Metrics counts.
type block struct {
	ctx    context.Context // of the first query; most often all have it
	server string
	view   string
	series []atomic.Pointer[vars.Series] // of each zone; made when there is a query for it
	rest   *vars.Series                  // of names that are in no zone
}

// of is the series of a zone.
func (b *block) of(z *zones, i int) *vars.Series {
	s := b.series[i].Load()
	if s == nil {
		s = vars.SeriesOf(b.server, z.names[i], b.view)
		b.series[i].Store(s)
	}
	return s
}

// ServeWire passes the query on and counts it when it has been served.
func (m *Metrics) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	out := plugin.NextWire(m.Name(), m.Next, ctx, w, q)
	if out == wire.Done {
		z := m.current()
		b := z.block(ctx)
		s := b.rest
		if i, ok := z.index.Longest(q.Lower()); ok {
			s = b.of(z, i)
		}
		s.Count(q, w)
	}
	return out
}

// WireSelf returns m.
func (m *Metrics) WireSelf() plugin.Handler { return m }

// Prompt implements plugin.Prompt.
func (m *Metrics) Prompt() bool { return true }

// block is the block of ctx. A block is told by its context, which is one and the same for all its queries, unless a plugin
// further up adds to it; then by what is counted under. There are as many as a server block has listeners.
func (z *zones) block(ctx context.Context) *block {
	known := z.known()
	for _, b := range known {
		if b.ctx == ctx {
			return b
		}
	}
	server, view := WithServer(ctx), WithView(ctx)
	same := func(b *block) bool { return b.server == server && b.view == view }
	if i := slices.IndexFunc(known, same); i >= 0 {
		return known[i]
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	known = z.known()
	if i := slices.IndexFunc(known, same); i >= 0 { // another query was faster
		return known[i]
	}
	b := &block{ctx: ctx, server: server, view: view, series: make([]atomic.Pointer[vars.Series], len(z.names)), rest: vars.SeriesOf(server, ".", view)}
	next := append(slices.Clone(known), b)
	z.blocks.Store(&next)
	return b
}

func (z *zones) known() []*block {
	if blocks := z.blocks.Load(); blocks != nil {
		return *blocks
	}
	return nil
}
