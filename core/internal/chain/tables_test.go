package chain

import (
	"context"
	"slices"
	"testing"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// tableHandler is a handler with a table.
type tableHandler struct {
	next  plugin.Handler
	large bool
}

func (h *tableHandler) Name() string { return "table" }
func (h *tableHandler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(h.Name(), h.next, ctx, w, r)
}
func (h *tableHandler) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return plugin.NextWire(h.Name(), h.next, ctx, w, q)
}
func (h *tableHandler) WireSelf() plugin.Handler            { return h }
func (h *tableHandler) Large() bool                         { return h.large }
func (h *tableHandler) ReadAhead(*wire.Query, int, any) any { return nil }

// tableHeir has the methods of a table from one that it embeds.
type tableHeir struct{ *tableHandler }

func (h tableHeir) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return h.tableHandler.ServeDNS(ctx, w, r)
}

// TestLargeTables: those that are large now, of blocks that have a wire lane.
func TestLargeTables(t *testing.T) {
	large, small, inherited, behind := &tableHandler{large: true}, &tableHandler{}, &tableHandler{large: true}, &tableHandler{large: true}
	set := func(h *tableHandler) plugin.Plugin {
		return func(next plugin.Handler) plugin.Handler { h.next = next; return h }
	}
	var view string
	block := func(zone string, plugins ...plugin.Plugin) Block {
		return Block{Zone: zone, Plugins: plugins, Filters: new([]FilterFunc), View: &view}
	}
	c, err := Build(Options{Finish: new(reply.Finisher)}, []Block{
		block("a.example.", set(large), set(small)),
		// The one behind is in a chain without wire lane.
		block("b.example.", func(next plugin.Handler) plugin.Handler { inherited.next = next; return tableHeir{inherited} }, set(behind)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.LargeTables(nil); !slices.Equal(got, []readahead.Table{large}) {
		t.Errorf("got %v", got)
	}
	small.large = true
	if got := c.LargeTables(nil); !slices.Equal(got, []readahead.Table{large, small}) {
		t.Errorf("got %v when another one had become large", got)
	}
	many := make([]plugin.Plugin, readahead.MostTables+2)
	for i := range many {
		many[i] = set(&tableHandler{large: true})
	}
	if c, err = Build(Options{Finish: new(reply.Finisher)}, []Block{block(".", many...)}); err != nil {
		t.Fatal(err)
	}
	if got := len(c.LargeTables(nil)); got != readahead.MostTables {
		t.Errorf("got %d tables", got)
	}
	c.blocks[0].leaveWire()
	if got := len(c.LargeTables(nil)); got != 0 {
		t.Errorf("got %d tables of a block that has left the wire lane", got)
	}
}
