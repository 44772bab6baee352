package metrics

import (
	"context"
	"slices"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// block is a server block in which a Metrics counts, with its series by zone.
type block struct {
	ctx    context.Context // of the first query; most often all have it
	server string
	view   string
	series wire.Suffixes[*vars.Series]
	rest   *vars.Series // of names that are in no zone
}

// ServeWire passes the query on and counts it when it has been served.
func (m *Metrics) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	out := plugin.NextWire(m.Name(), m.Next, ctx, w, q)
	if out == wire.Done {
		b := m.block(ctx)
		s, ok := b.series.Longest(q.Lower())
		if !ok {
			s = b.rest
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
func (m *Metrics) block(ctx context.Context) *block {
	known := m.known()
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
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.newBlock(ctx, server, view)
	next := append(slices.DeleteFunc(slices.Clone(m.known()), same), b) // another query may have been faster
	m.blocks.Store(&next)
	return b
}

func (m *Metrics) known() []*block {
	if blocks := m.blocks.Load(); blocks != nil {
		return *blocks
	}
	return nil
}

func (m *Metrics) newBlock(ctx context.Context, server, view string) *block {
	b := &block{ctx: ctx, server: server, view: view, rest: vars.SeriesOf(server, ".", view)}
	for _, z := range m.current() {
		if name, err := wire.LowerName(z); err == nil {
			b.series.Set(name, vars.SeriesOf(server, z, view))
		}
	}
	return b
}
