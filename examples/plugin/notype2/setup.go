package notype2

import (
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const pluginName = "notype2"

func init() { plugin.Register(pluginName, setup) }

// settings are what the directive configures.
type settings struct {
	types  map[uint16]bool
	refuse bool
}

var denied = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace, Subsystem: pluginName, Name: "denied_total", Help: "Counter of queries that were denied for their type.",
}, []string{"server"})

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "TYPE...", Min: 1, Max: -1, Set: func(s *settings, l *corefile.Line) error {
		for _, arg := range l.Args {
			t, ok := dns.StringToType[strings.ToUpper(arg)]
			if !ok {
				return l.Errf("unknown type '%s'", arg)
			}
			s.types[t] = true
		}
		return nil
	}},
	Options: corefile.Table[settings]{
		corefile.Flag("refuse", "refuse such queries; else there is no data", func(s *settings) { s.refuse = true }),
	},
})

func setup(c *caddy.Controller) error {
	s := settings{types: map[uint16]bool{}}
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return &NoType{next, s} })
	return nil
}
