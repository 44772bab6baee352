// Package view leads queries to one of several server blocks for the same zone: a block with a view takes only those for which
// its expressions are true.
//
//	query ──Filter, FilterWire──▶ expressions ──all true──▶ this block
//	                                        └──────────────▶ the next block for the zone, or for the zone above
//
// Both lanes evaluate the same expressions over a wire.Query; the few that read metadata need the message lane. Expressions of
// the usual shapes become Go functions that do not allocate (native.go), all others run on the virtual machine of
// expr-lang. Any number of goroutines may use a View. Start at View.Filter and condition.go.
package view

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const pluginName = "view"

// View makes its block one that takes only some queries.
type View struct {
	Next plugin.Handler

	name       string
	conditions []*condition
}

// Name is the plugin's name.
func (*View) Name() string { return pluginName }

// ViewName is the view's name as configured.
func (v *View) ViewName() string { return v.name }

// Filter reports whether the query belongs to the view. ctx holds the metadata of the block.
func (v *View) Filter(ctx context.Context, state *request.Request) bool {
	e := evaluators.Get().(*evaluator)
	defer e.free()
	if e.own.SetMsg(state.Req, wire.PeerOf(state.W.RemoteAddr(), state.W.LocalAddr())) != nil {
		return false
	}
	return v.belongs(e, ctx, &e.own)
}

// FilterWire is Filter for a query that is not unpacked. It is not sure if an expression reads metadata.
func (v *View) FilterWire(ctx context.Context, q *wire.Query) (belongs, sure bool) {
	if v.ReadsMetadata() {
		return false, false
	}
	e := evaluators.Get().(*evaluator)
	defer e.free()
	return v.belongs(e, ctx, q), true
}

// belongs reports whether all expressions are true.
func (v *View) belongs(e *evaluator, ctx context.Context, q *wire.Query) bool { //nolint:revive // e is what ctx is put into
	e.ctx, e.q = ctx, q
	for _, x := range v.conditions {
		if !x.holds(e) {
			return false
		}
	}
	return true
}

// ReadsMetadata reports whether an expression reads labels.
func (v *View) ReadsMetadata() bool {
	for _, x := range v.conditions {
		if x.metadata {
			return true
		}
	}
	return false
}

// Metadata offers the view's name.
func (v *View) Metadata(ctx context.Context, _ request.Request) context.Context {
	metadata.SetValueFunc(ctx, "view/name", v.ViewName)
	return ctx
}

// ServeDNS passes the query on: its work was done when the block was chosen.
func (v *View) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(v.Name(), v.Next, ctx, w, r)
}

// ServeWire passes the query on.
func (v *View) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return plugin.NextWire(v.Name(), v.Next, ctx, w, q)
}

// WireSelf returns v.
func (v *View) WireSelf() plugin.Handler { return v }
