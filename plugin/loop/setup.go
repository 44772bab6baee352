package loop

import (
	"slices"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what the directive configures.
type settings struct{ breaks bool }

// What is done about a loop.
const (
	actExit  = "exit"
	actBreak = "break"
)

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Options: corefile.Table[settings]{
		corefile.Enum("action", []string{actExit, actBreak}, "what is done about a loop", func(s *settings, word string) { s.breaks = word == actBreak }),
	},
})

func setup(c *caddy.Controller) error {
	var s settings
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	cfg := dnsserver.GetConfig(c)
	l := New(cfg.Zone)
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		l.Next = next
		return l
	})
	if s.breaks {
		cfg.Plugin = slices.Insert(cfg.Plugin, 0, plugin.Plugin(func(next plugin.Handler) plugin.Handler { return &gate{next, l} }))
	}
	var p *prober
	before := handOver
	c.OnFirstStartup(func() error {
		before = 0
		return nil
	})
	c.OnStartup(func() error {
		if cfg.Transport != "" && cfg.Transport != transport.DNS { // nobody there who answers over UDP
			l.off.Store(true)
			return nil
		}
		if h, ok := cfg.Handler("forward").(interface{ List() []*proxy.Proxy }); ok {
			l.upstreams = h.List
		}
		p = newProber(l, cfg.ListenHosts[0], cfg.Port)
		p.breaks, p.before = s.breaks, before
		return p.start()
	})
	dnsserver.OnEnd(c, func() error {
		if p == nil {
			return nil
		}
		return p.stop()
	})
	return nil
}
