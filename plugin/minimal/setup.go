package minimal

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what the directive configures: nothing.
type settings struct{}

var directive = corefile.Define(&corefile.Directive[settings]{Name: pluginName})

func setup(c *caddy.Controller) error {
	if err := directive.Parse(c, new(settings)); err != nil {
		return err
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return handler{Next: next} })
	return nil
}
