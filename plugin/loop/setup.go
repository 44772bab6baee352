package loop

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what the directive configures: nothing.
type settings struct{}

var directive = corefile.Define(corefile.Directive[settings]{Name: pluginName, Once: true})

func setup(c *caddy.Controller) error {
	if err := directive.Parse(c, new(settings)); err != nil {
		return err
	}
	cfg := dnsserver.GetConfig(c)
	l := New(cfg.Zone)
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		l.Next = next
		return l
	})
	var p *prober
	c.OnStartup(func() error {
		if cfg.Transport != "" && cfg.Transport != transport.DNS { // nobody there who answers over UDP
			l.off.Store(true)
			return nil
		}
		if h, ok := cfg.Handler("forward").(interface{ List() []*proxy.Proxy }); ok {
			l.upstreams = func() (addrs []string) {
				for _, p := range h.List() {
					addrs = append(addrs, p.Addr())
				}
				return addrs
			}
		}
		p = newProber(l, cfg.ListenHosts[0], cfg.Port)
		return p.start()
	})
	c.OnShutdown(func() error {
		if p == nil {
			return nil
		}
		return p.stop()
	})
	return nil
}
