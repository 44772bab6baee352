// Package metadata collects facts about a query under labels, which other plugins provide and again others read: a log
// format, the expression of a view, a rewrite rule.
//
//	Server ──Collect──▶ Provider.Metadata ──SetValueFunc──▶ labels in the query's context
//	                                                              │
//	            view, log, template, ... ◀──ValueFunc──────────────┘
//
// Labels are written plugin/name. Their values are functions, called when somebody reads them. Collecting happens in
// the message lane alone, so a query goes there if a plugin of its block says that it reads labels, or if a provider
// has no wire lane.
//
// A query's labels may be read and set by several goroutines at once. Start at Metadata.Collect and label.go.
package metadata

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Provider is a plugin that has labels to offer.
type Provider interface {
	// Metadata sets labels with SetValueFunc and returns the context in which the query is to go on, mostly ctx. It is called for
	// each query before its block is chosen, by many goroutines at once, and should leave work to the values' functions.
	Metadata(ctx context.Context, state request.Request) context.Context
}

// Reader is a plugin with a wire lane that tells whether it reads labels. Plugins without a wire lane, and such as do not
// tell, need not: the former always find their labels, and the latter read none.
type Reader interface {
	ReadsMetadata() bool
}

// Metadata collects the labels of queries for some zones.
type Metadata struct {
	Zones     []string
	Providers []Provider
	Next      plugin.Handler

	read bool // a plugin of the block reads labels, or a provider is to see each query
}

// Name is the plugin's name.
func (m *Metadata) Name() string { return pluginName }

// Collect returns ctx with labels of its own, those that Providers offer for the query, or none if its name is in
// none of Zones. The server calls it before it decides which block the query belongs to.
func (m *Metadata) Collect(ctx context.Context, state request.Request) context.Context {
	ctx = ContextWithMetadata(ctx)
	if plugin.Zones(m.Zones).Matches(state.Name()) == "" {
		return ctx
	}
	for _, p := range m.Providers {
		ctx = p.Metadata(ctx, state)
	}
	return ctx
}

// ServeDNS passes the query on; its labels were collected before.
func (m *Metadata) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(m.Name(), m.Next, ctx, w, r)
}

// ServeWire passes the query on, unless somebody wants to know its labels.
func (m *Metadata) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if m.read {
		return wire.Unpack
	}
	return plugin.NextWire(m.Name(), m.Next, ctx, w, q)
}

// WireSelf returns m.
func (m *Metadata) WireSelf() plugin.Handler { return m }

// discover takes the providers and readers out of a block's chain.
func (m *Metadata) discover(chain []plugin.Handler) {
	m.Providers, m.read = nil, false
	for _, h := range chain {
		if p, ok := h.(Provider); ok {
			m.Providers = append(m.Providers, p)
			m.read = m.read || !plugin.HasWire(h) // one of others may do more than offer labels
		}
		if r, ok := h.(Reader); ok && r.ReadsMetadata() {
			m.read = true
		}
	}
}
