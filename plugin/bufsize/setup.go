package bufsize

import (
	"fmt"
	"strconv"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// Sizes in octets.
const (
	minSize     = 512
	maxSize     = 4096
	defaultSize = 1232 // passes everywhere over IPv6 unfragmented
)

var directive = corefile.Define(&corefile.Directive[Bufsize]{
	Name: pluginName,
	Args: corefile.Args[Bufsize]{Syntax: "[SIZE]", Max: 1, Set: func(buf *Bufsize, l *corefile.Line) error {
		if len(l.Args) == 0 {
			return nil
		}
		size, err := strconv.Atoi(l.Args[0])
		if err != nil || size < minSize || size > maxSize {
			return fmt.Errorf("%w: the size must be a number between %d and %d", l.CountErr(), minSize, maxSize)
		}
		buf.Size = size
		return nil
	}},
})

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, Bufsize{Size: defaultSize})
	if err != nil {
		return plugin.Error(pluginName, err) // the name stands twice in what is told, as it always has
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		return Bufsize{Next: next, Size: all[0].Size} // of several directives the first holds
	})
	return nil
}
