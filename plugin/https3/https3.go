// Package https3 bounds the connections and streams of the server block's listeners of DNS over HTTP/3. It has no part in queries.
//
//	https3 { max_streams 256 } ──parse──▶ settings ──▶ Config.MaxHTTPS3Streams
//
// Start at setup.
package https3

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/limit"

	"github.com/coredns/caddy"
)

const pluginName = "https3"

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says; nil stands for what it does not say.
type settings struct{ streams, connections *int }

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Options: corefile.Table[settings]{
		limit.Option("max_streams", "streams of a connection at one time, 0 for what the library allows", 0, func(s *settings) **int { return &s.streams }),
		limit.Option("max_connections", "open connections, 0 for any number", 0, func(s *settings) **int { return &s.connections }),
	},
})

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, settings{})
	if err != nil {
		return err
	}
	config := dnsserver.GetConfig(c) // of several directives the first counts
	config.MaxHTTPS3Streams = all[0].streams
	config.MaxHTTPS3Connections = all[0].connections
	return nil
}
