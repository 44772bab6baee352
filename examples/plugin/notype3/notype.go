// Package notype3 denies records of some types at all names. It serves both lanes.
//
// A NoType does not change once it is made; any number of goroutines may call it. Start at NoType.deny.
package notype3

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// NoType answers queries of its types, and passes on all others.
type NoType struct {
	Next plugin.Handler
	settings
}

// deny is the one decision, for both lanes. It reports false if the query is not for us.
func (n *NoType) deny(ctx context.Context, w *wire.Reply, q *wire.Query) bool {
	if !n.types[q.Type()] {
		return false
	}
	denied.WithLabelValues(plugin.Label(ctx)).Inc()
	if n.refuse {
		w.Fail(dns.RcodeRefused, nil)
		return true
	}
	w.Begin(q)
	w.SetWriter(pluginName)
	return true
}

// ServeDNS is the message lane.
func (n *NoType) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	a, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, plugin.Error(pluginName, err)
	}
	defer a.Free()
	if !n.deny(ctx, &a.Reply, &a.Query) {
		return plugin.NextOrFailure(pluginName, n.Next, ctx, w, r)
	}
	return a.Write()
}

// ServeWire is the wire lane.
func (n *NoType) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if !n.deny(ctx, w, q) {
		return plugin.NextWire(pluginName, n.Next, ctx, w, q)
	}
	return wire.Done
}

// Name, WireSelf and Prompt say who this is, that ServeWire is its own, and that ServeDNS never waits.
func (n *NoType) Name() string             { return pluginName }
func (n *NoType) WireSelf() plugin.Handler { return n }
func (n *NoType) Prompt() bool             { return true }
