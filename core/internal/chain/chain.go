// Package chain leads a query to its block and chain of plugins, in either lane, and answers where no plugin does.
//
//	wire lane     ServeWire ─┐                              ┌─▶ plugins: ServeWire ─▶ Finisher
//	                         ├─ route.go: block of the name ┤
//	message lane  ServeDNS ──┘                              └─▶ plugins: ServeDNS ──▶ chainWriter
//
// A Chain does not change once it is built; any number of goroutines may use it. It knows no sockets. Start at
// Chain.ServeWire.
package chain

import (
	"context"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// FilterFunc decides whether a query belongs to a block. All of a block's filters must say so.
type FilterFunc func(context.Context, *request.Request) bool

// Viewer is a plugin that makes its block a view: one of several blocks for the same
// zone, chosen query by query.
type Viewer interface {
	// Filter reports whether the query belongs to the view.
	Filter(ctx context.Context, req *request.Request) bool
	// ViewName is the view's name, for metrics.
	ViewName() string
}

// Collector is a plugin that gathers metadata about a query before it is
// led to a block.
type Collector interface {
	Collect(context.Context, request.Request) context.Context
}

// Options are what all blocks of a Chain have in common.
type Options struct {
	// Self is what plugin.ServerKey holds.
	Self any
	// Label is the label server of metrics.
	Label string
	// Debug turns recovering from panics off; Stacktrace adds the stack to the log line of one.
	Debug, Stacktrace bool
	// Finish ends replies.
	Finish *reply.Finisher
}

// Block is a server block, or that of its zones which the Chain serves.
type Block struct {
	Zone    string
	Plugins []plugin.Plugin
	// Filters and View are those of the block; they may change until the first query.
	Filters *[]FilterFunc
	View    *string
	// Opcodes are those that the block takes beside QUERY and NOTIFY: bit n is opcode n.
	Opcodes uint16
}

// takes reports whether b takes messages of an opcode.
func (b *Block) takes(opcode int) bool {
	return opcode == dns.OpcodeQuery || opcode == dns.OpcodeNotify || b.Opcodes>>opcode&1 != 0
}

// Chain is the blocks of one server with their plugins. It implements service.Decider.
type Chain struct {
	Options
	// Classes says that queries of other classes than IN are taken.
	Classes bool

	blocks []*block
	router *router
}

// Build makes the chains of blocks.
func Build(o Options, blocks []Block) (c *Chain, err error) {
	c = &Chain{Options: o}
	for _, b := range blocks {
		c.blocks = append(c.blocks, c.build(b))
	}
	c.router, err = newRouter(c.blocks)
	return c, err
}

// Handlers is the plugins of block i in the order of the chain.
func (c *Chain) Handlers(i int) []plugin.Handler { return c.blocks[i].chain }

// Opcodes are those that any block takes beside QUERY and NOTIFY: bit n is opcode n.
func (c *Chain) Opcodes() (all uint16) {
	for _, b := range c.blocks {
		all |= b.Block.Opcodes
	}
	return all
}

// Wire reports whether any block has a chain for the wire lane.
func (c *Chain) Wire() bool {
	return slices.ContainsFunc(c.blocks, func(b *block) bool { return b.wire != nil })
}

// block is a Block with its chain.
type block struct {
	Block
	chain     []plugin.Handler
	head      plugin.Handler // first handler of the chain, nil if there is none
	collector Collector
	wire      plugin.WireHandler // head, if it serves the wire lane
	ctx       *blockContext      // for the wire lane
	left      atomic.Bool        // the wire lane, for good: see leaveWire
	tables    []readahead.Table  // of the chain
}

// build makes the chain of from, from its end to its begin.
func (c *Chain) build(from Block) *block {
	b := &block{Block: from, chain: make([]plugin.Handler, len(from.Plugins))}
	b.ctx = &blockContext{context.Background(), c.Self, b}
	var next plugin.Handler
	for i := len(b.Plugins) - 1; i >= 0; i-- {
		h := b.Plugins[i](next)
		b.chain[i] = h
		// Going up, so that of several the first one counts.
		if m, ok := h.(Collector); ok {
			b.collector = m
		}
		// What the handler above gets as its next one; b.chain has the handlers as they are.
		next = messageOnly(h)
		if _, ok := next.(plugin.WireHandler); !ok {
			if rest := promptRest(b.chain[i:]); rest != nil {
				next = &inlineHandler{h, b, rest}
			}
		}
		b.head = h
	}
	if h, ok := next.(plugin.WireHandler); ok && !b.collectsMessages() {
		b.wire = h
	}
	b.tables = tablesOf(b.chain)
	return b
}

// collectsMessages reports whether the collector is of others, who know no wire lane: it is to see each query, also
// those that a handler above it would answer there.
func (b *block) collectsMessages() bool {
	return b.collector != nil && !plugin.HasWire(b.collector.(plugin.Handler)) // it is of the chain
}

// messageOnly is h, but if h has its ServeWire from a handler that it embeds, h without it.
func messageOnly(h plugin.Handler) plugin.Handler {
	if _, ok := h.(plugin.WireHandler); ok && !plugin.HasWire(h) {
		return plainHandler{h}
	}
	return h
}

// plainHandler is a handler of which only the methods of Handler are seen.
type plainHandler struct{ plugin.Handler }

// recovered counts and logs a panic of a plugin; the query gets SERVFAIL.
func (c *Chain) recovered(v any) {
	vars.Panic.Inc()
	if c.Stacktrace {
		log.Errorf("Recovered from panic in server: %q %v\n%s", c.Label, v, debug.Stack())
		return
	}
	log.Errorf("Recovered from panic in server: %q %v", c.Label, v)
}
