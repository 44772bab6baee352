// Package shed drops queries that come over UDP while more replies wait than a socket can send: answering them would be in vain.
//
//	query ──▶ Shed ──▶ rest of the chain ──▶ reply ──▶ socket, or else its stack of 1,024 replies ──▶ socket
//	             ▲                                                       │
//	             └── is the stack full? ── dnsserver.Server.Shed ◀───────┘
//
// The stacks are the listener's (package dnsserver). Shed asks in both lanes. Start at Shed.ServeDNS.
package shed

import (
	"context"
	"errors"
	"net"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

const pluginName = "shed"

func init() { plugin.Register(pluginName, setup) }

// Shed is the handler.
type Shed struct {
	Next plugin.Handler
}

// Name is the plugin's name.
func (s *Shed) Name() string { return pluginName }

// ServeDNS drops the query, or passes it on.
func (s *Shed) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if _, udp := w.RemoteAddr().(*net.UDPAddr); udp && full(ctx) {
		return dns.RcodeSuccess, nil
	}
	return plugin.NextOrFailure(s.Name(), s.Next, ctx, w, r)
}

// ServeWire drops the query, or passes it on.
func (s *Shed) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if q.Proto == wire.UDP && full(ctx) {
		w.Drop()
		return wire.Done
	}
	return plugin.NextWire(s.Name(), s.Next, ctx, w, q)
}

// WireSelf returns s.
func (s *Shed) WireSelf() plugin.Handler { return s }

// full reports whether the listener cannot send more.
func full(ctx context.Context) bool {
	server, ok := ctx.Value(plugin.ServerKey{}).(interface{ Shed() bool })
	return ok && server.Shed()
}

var errNoOptions = errors.New("shed takes no options")

// directive has no settings.
var directive = corefile.Define(&corefile.Directive[struct{}]{
	Name: pluginName,
	Once: true,
	Unlisted: func(*struct{}, *corefile.Line) (bool, error) {
		return true, errNoOptions
	},
})

func setup(c *caddy.Controller) error {
	if err := directive.Parse(c, new(struct{})); err != nil {
		return err
	}
	for _, key := range c.ServerBlockKeys {
		if trans, _ := parse.Transport(key); trans != transport.DNS {
			return plugin.Error(pluginName, c.Errf("only plain DNS server blocks are supported; %q uses transport %q", key, trans))
		}
	}
	config := dnsserver.GetConfig(c)
	config.Shed = true
	config.AddPlugin(func(next plugin.Handler) plugin.Handler { return &Shed{Next: next} })
	return nil
}
