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
	ctx    context.Context // all queries of the block have it
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
// further up adds to it.
func (m *Metrics) block(ctx context.Context) *block {
	if blocks := m.blocks.Load(); blocks != nil {
		for _, b := range *blocks {
			if b.ctx == ctx {
				return b
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.newBlock(ctx)
	var next []*block
	if blocks := m.blocks.Load(); blocks != nil {
		next = slices.Clone(*blocks)
	}
	if len(next) == maxBlocks {
		next = next[1:]
	}
	next = append(next, b)
	m.blocks.Store(&next)
	return b
}

// maxBlocks is how many blocks are remembered. There are as many as a block has listeners.
const maxBlocks = 32

func (m *Metrics) newBlock(ctx context.Context) *block {
	server, view := WithServer(ctx), WithView(ctx)
	b := &block{ctx: ctx, rest: vars.SeriesOf(server, ".", view)}
	for _, z := range m.current() {
		if name, err := wire.LowerName(z); err == nil {
			b.series.Set(name, vars.SeriesOf(server, z, view))
		}
	}
	return b
}
