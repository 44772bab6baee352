package local

import (
	"fmt"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

var directive = corefile.Define(&corefile.Directive[Local]{
	Name: pluginName,
	Options: corefile.Table[Local]{
		corefile.Row("localhost_prefix", "on|off", "whether localhost with a search domain behind it is local", 1, 1, func(l *Local, line *corefile.Line) error {
			switch word := line.Args[0]; word {
			case "on", "off":
				l.noPrefix = word == "off"
				return nil
			default:
				return fmt.Errorf("localhost_prefix expects 'on' or 'off', got %q", word)
			}
		}),
	},
})

func setup(c *caddy.Controller) error {
	var settings Local
	if err := directive.Parse(c, &settings); err != nil {
		return err
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		return Local{Next: next, noPrefix: settings.noPrefix}
	})
	return nil
}
