// Package any answers queries for all types of a name with as little as RFC 8482 asks for, so that they are no use for
// amplifying attacks. Start at Any.ServeDNS.
package any

import (
	"context"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

const pluginName = "any"

func init() { plugin.Register(pluginName, setup) }

// Any answers queries of type ANY and passes all others on.
type Any struct{ Next plugin.Handler }

// Name is the plugin's name.
func (a Any) Name() string { return pluginName }

// ServeDNS answers a query of type ANY.
func (a Any) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) == 0 || r.Question[0].Qtype != dns.TypeANY {
		return plugin.NextOrFailure(a.Name(), a.Next, ctx, w, r)
	}
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, plugin.Error(pluginName, err)
	}
	defer adapter.Free()
	answer(&adapter.Reply, &adapter.Query)
	return adapter.Write()
}

// ServeWire answers a query of type ANY.
func (a Any) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if q.Type() != wire.TypeANY {
		return plugin.NextWire(a.Name(), a.Next, ctx, w, q)
	}
	answer(w, q)
	return wire.Done
}

// WireSelf returns a.
func (a Any) WireSelf() plugin.Handler { return a }

// Prompt implements plugin.Prompt.
func (a Any) Prompt() bool { return true }

// ttl is long, and tells where the answer comes from.
const ttl = 8482

// hinfo is the RDATA of the record that stands for all types (RFC 8482 §4.2): CPU and OS.
var hinfo = []byte("\x0dANY obsoleted" + "\x0cSee RFC 8482")

func answer(w *wire.Reply, q *wire.Query) {
	w.Begin(q)
	w.SetWriter(pluginName)
	w.Record(wire.Answer, q.Name(), dns.TypeHINFO, wire.ClassIN, ttl, hinfo)
}

// settings is what the directive configures: nothing.
type settings struct{}

var directive = corefile.Define(&corefile.Directive[settings]{Name: pluginName})

func setup(c *caddy.Controller) error {
	if err := directive.Parse(c, new(settings)); err != nil {
		return err
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return Any{Next: next} })
	return nil
}
