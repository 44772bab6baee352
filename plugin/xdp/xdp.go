// Package xdp has the queries of a server block's UDP listeners read past the kernel's network stack. It has no part in
// queries.
//
//	xdp eth0 ──parse──▶ Config.Direct ──▶ listeners: pkg/afxdp
//	             └── startup: opens the interface, so that what is in the way is told
//
// Start at setup.
package xdp

import (
	"fmt"
	"net"
	"slices"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/afxdp"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	clog "github.com/coredns/coredns/plugin/pkg/log"

	"github.com/coredns/caddy"
)

const pluginName = "xdp"

var log = clog.NewWithPlugin(pluginName)

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says.
type settings struct{ interfaces []string }

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[settings]{Syntax: "INTERFACE...", Min: 1, Max: -1, Set: func(s *settings, l *corefile.Line) error {
		s.interfaces = slices.Compact(slices.Sorted(slices.Values(l.Args)))
		return nil
	}},
})

func setup(c *caddy.Controller) error {
	var s settings
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	dnsserver.GetConfig(c).Direct = s.interfaces
	for _, name := range s.interfaces {
		dnsserver.Check(c, func() error {
			_, err := net.InterfaceByName(name)
			return refused(name, err)
		})
		c.OnStartup(func() error {
			d, err := afxdp.Open(name)
			switch {
			case err != nil && caddy.IsUpgrade() && afxdp.Taken(err):
				return nil // by the process before this one: listeners open it when that has gone
			case err != nil:
				return refused(name, err)
			}
			dnsserver.OnEnd(c, func() error { d.Close(); return nil })
			mode := "native"
			if !d.Native {
				mode = "generic, as its driver has none"
			}
			log.Infof("Reading %s past the kernel: queues %d, mode %s", name, d.Queues(), mode)
			return nil
		})
	}
	return nil
}

// refused is the error of an interface; nil if err is.
func refused(name string, err error) error {
	if err == nil {
		return nil
	}
	return plugin.Error(pluginName, fmt.Errorf("interface %q: %w", name, err))
}
