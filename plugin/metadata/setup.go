package metadata

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

const pluginName = "metadata"

func init() { plugin.Register(pluginName, setup) }

// settings is what the directive configures.
type settings struct {
	zones []string
	seen  bool
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name:    pluginName,
	Unknown: corefile.UnknownAsCount,
	Args: corefile.Args[settings]{Syntax: "[ZONES...]", Max: -1, Set: func(s *settings, l *corefile.Line) (err error) {
		if s.seen {
			return l.CountErr()
		}
		s.seen = true
		s.zones, err = plugin.ZonesFromArgs(l.Args, l.Controller().ServerBlockKeys)
		return err
	}},
})

func parse(c *caddy.Controller) (*Metadata, error) {
	var s settings
	if err := directive.Parse(c, &s); err != nil {
		return nil, err
	}
	return &Metadata{Zones: s.zones}, nil
}

func setup(c *caddy.Controller) error {
	m, err := parse(c)
	if err != nil {
		return err
	}
	config := dnsserver.GetConfig(c)
	config.AddPlugin(func(next plugin.Handler) plugin.Handler {
		m.Next = next
		return m
	})
	c.OnStartup(func() error {
		m.discover(config.Chain())
		return nil
	})
	return nil
}
