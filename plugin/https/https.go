// Package https bounds the connections of the server block's listeners of DNS over HTTPS. It has no part in queries.
//
//	https { max_connections 200 } ──parse──▶ settings ──▶ Config.MaxHTTPSConnections
//
// Start at setup.
package https

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/limit"

	"github.com/coredns/caddy"
)

const pluginName = "https"

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says; nil stands for what it does not say.
type settings struct{ connections *int }

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Options: corefile.Table[settings]{
		limit.Option("max_connections", "open connections, 0 for any number", 0, func(s *settings) **int { return &s.connections }),
	},
})

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, settings{})
	if err != nil {
		return err
	}
	config := dnsserver.GetConfig(c) // of several directives the first counts
	config.MaxHTTPSConnections = all[0].connections
	return nil
}
