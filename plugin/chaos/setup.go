package chaos

import (
	"slices"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

var directive = corefile.Define(&corefile.Directive[Chaos]{
	Name: pluginName,
	Args: corefile.Args[Chaos]{Syntax: "[VERSION] [AUTHORS...]", Max: -1, Set: func(c *Chaos, l *corefile.Line) error {
		if c.Version != "" {
			return nil // the first one counts
		}
		c.Version, c.Authors = caddy.AppName+"-"+caddy.AppVersion, slices.Clone(Owners)
		if len(l.Args) > 0 {
			c.Version = l.Args[0]
		}
		if len(l.Args) > 1 {
			c.Authors = slices.Clone(l.Args[1:])
		}
		slices.Sort(c.Authors)
		c.Authors = slices.Compact(c.Authors)
		return nil
	}},
	Options: corefile.Table[Chaos]{
		corefile.Enum("hostname", []string{"on", "off"}, "whether the name of the host is told", func(c *Chaos, word string) { c.noHostname = word == "off" }),
	},
})

func setup(c *caddy.Controller) error {
	var settings Chaos
	if err := directive.Parse(c, &settings); err != nil {
		return err
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		chaos := settings
		chaos.Next = next
		return chaos
	})
	return nil
}
