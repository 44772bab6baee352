package geoip

import (
	"errors"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what the Corefile says.
type settings struct {
	path   string
	subnet bool
}

var errSeveral = errors.New("configuring multiple databases is not supported")

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "DBFILE", Min: 1, Max: -1, Set: func(s *settings, l *corefile.Line) error {
		if s.path != "" || len(l.Args) > 1 {
			return errSeveral
		}
		s.path = l.Args[0]
		return nil
	}},
	Unknown: `unknown property "%s"`,
	Options: corefile.Table[settings]{
		corefile.Flag("edns-subnet", "look up the address of the client subnet option, if there is one", func(s *settings) { s.subnet = true }),
	},
})

func setup(c *caddy.Controller) error {
	var s settings
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	db, err := open(s.path)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	dnsserver.OnEnd(c, func() error {
		db.close()
		return nil
	})
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		return GeoIP{Next: next, db: db, subnet: s.subnet}
	})
	return nil
}
