// Package notype1 denies records of some types at all names. It takes messages only.
//
// A NoType does not change once it is made; any number of goroutines may call it. Start at NoType.ServeDNS.
package notype1

import (
	"context"

	"github.com/coredns/coredns/plugin"

	"github.com/miekg/dns"
)

// NoType answers queries of its types, and passes on all others.
type NoType struct {
	Next plugin.Handler
	settings
}

// Name is the plugin's name.
func (n *NoType) Name() string { return pluginName }

// ServeDNS answers r, or has the next plugin do so.
func (n *NoType) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if !n.types[r.Question[0].Qtype] {
		return plugin.NextOrFailure(pluginName, n.Next, ctx, w, r)
	}
	denied.WithLabelValues(plugin.Label(ctx)).Inc()
	if n.refuse {
		return dns.RcodeRefused, nil // nothing is written: the server writes an error reply
	}
	m := new(dns.Msg).SetReply(r)
	return dns.RcodeSuccess, w.WriteMsg(m)
}
