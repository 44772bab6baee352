package nsid

import (
	"os"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

var directive = corefile.Define(&corefile.Directive[Nsid]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[Nsid]{Syntax: "[DATA...]", Max: -1, Set: func(n *Nsid, l *corefile.Line) error {
		if len(l.Args) > 0 {
			n.Data = strings.Join(l.Args, " ")
		}
		return nil
	}},
})

func setup(c *caddy.Controller) error {
	settings := Nsid{Data: hostname(os.Hostname())}
	if err := directive.Parse(c, &settings); err != nil {
		return err
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		return Nsid{Next: next, Data: settings.Data}
	})
	return nil
}

// hostname is the machine's name as os.Hostname returned it, "localhost" if it is not known.
func hostname(name string, err error) string {
	if err != nil || name == "" {
		return "localhost"
	}
	return name
}
