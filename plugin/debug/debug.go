// Package debug turns debugging on for a server block: debug lines are logged, and a plugin that panics ends the process
// instead of costing one query. It has no part in queries.
//
// Hexdump and Hexdumpf, in hexdump.go, are for other plugins. Start at setup.
package debug

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

const pluginName = "debug"

func init() { plugin.Register(pluginName, setup) }

// settings is what the directive configures: that it is there.
type settings struct{}

var directive = corefile.Define(&corefile.Directive[settings]{Name: pluginName})

// setup leaves it to the server to turn debug lines on: it knows all blocks.
func setup(c *caddy.Controller) error {
	if err := directive.Parse(c, new(settings)); err != nil {
		return err
	}
	dnsserver.GetConfig(c).Debug = true
	return nil
}
