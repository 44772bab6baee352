package view

import (
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/coredns/caddy"
)

var logger = log.NewWithPlugin(pluginName)

func init() { plugin.Register(pluginName, setup) }

var directive = corefile.Define(&corefile.Directive[View]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[View]{Syntax: "NAME", Min: 1, Max: 1, Set: func(v *View, l *corefile.Line) error {
		v.name = l.Args[0]
		return nil
	}},
	Options: corefile.Table[View]{
		corefile.Row("expr", "EXPRESSION", "a condition for queries to belong to the view", 0, -1, func(v *View, l *corefile.Line) error {
			x, err := compile(strings.Join(l.Args, " "))
			if err != nil {
				return err
			}
			for _, text := range x.noCIDRs {
				logger.Warningf("%s: incidr: %q is not a CIDR: that is an error for each query, which is not one of the view then", l.Place(), text)
			}
			v.conditions = append(v.conditions, x)
			return nil
		}),
	},
})

func setup(c *caddy.Controller) error {
	var v View
	if err := directive.Parse(c, &v); err != nil {
		return err
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		return &View{Next: next, name: v.name, conditions: v.conditions}
	})
	return nil
}
