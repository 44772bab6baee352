// Package multisocket makes several servers of each listener of the server block, which share its address. It has no part in
// queries.
//
//	multisocket 4 ──parse──▶ settings ──▶ Config.NumSockets
//
// Start at setup.
package multisocket

import (
	"fmt"
	"runtime"
	"strconv"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

const (
	pluginName = "multisocket"
	most       = 1024
)

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says.
type settings struct {
	sockets int
	seen    bool
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[NUM]", Max: 1, Set: func(s *settings, l *corefile.Line) error {
		if s.seen {
			return l.CountErr()
		}
		s.seen, s.sockets = true, runtime.GOMAXPROCS(0)
		if len(l.Args) == 0 {
			return nil
		}
		n, err := strconv.Atoi(l.Args[0])
		switch {
		case err != nil:
			return fmt.Errorf("invalid num sockets: %w", err)
		case n < 1:
			return fmt.Errorf("num sockets can not be zero or negative: %d", n)
		case n > most:
			return fmt.Errorf("num sockets exceeds maximum (%d): %d", most, n)
		}
		s.sockets = n
		return nil
	}},
})

func setup(c *caddy.Controller) error {
	var s settings
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	dnsserver.GetConfig(c).NumSockets = s.sockets
	return nil
}
