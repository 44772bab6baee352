package metrics

import (
	"fmt"
	"os"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/parse"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin/pkg/webconfig"
)

const (
	pluginName  = "prometheus"
	defaultAddr = "localhost:9153"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what the directive configures.
type settings struct {
	addr string
	serving
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name:    pluginName,
	Once:    true,
	Unknown: "unknown option: %s",
	Args: corefile.Args[settings]{Syntax: "[ADDRESS]", Max: 1, Set: func(s *settings, l *corefile.Line) error {
		if len(l.Args) == 0 {
			return nil
		}
		s.addr = l.Args[0]
		return parse.ListenAddr(s.addr)
	}},
	Options: corefile.Table[settings]{
		corefile.Flag("runtime_metrics", "serve all metrics of Go's runtime", func(s *settings) { s.runtimeMetrics = true }),
		corefile.Row("tls", "WEB_CONFIG_FILE", "file with TLS and users", 1, 1, func(s *settings, l *corefile.Line) error {
			if s.webConfig != "" {
				return l.Errf("tls block already specified")
			}
			s.webConfig = l.Args[0]
			if _, err := os.Stat(s.webConfig); err != nil {
				return l.Errf("TLS config file does not exist: %s", s.webConfig)
			}
			if err := webconfig.Validate(s.webConfig); err != nil {
				return l.Errf("TLS config file %s: %w", s.webConfig, err)
			}
			return nil
		}),
	},
})

func setup(c *caddy.Controller) error {
	s := settings{addr: defaultAddr}
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	m := New(s.addr)
	m.lease = m.newLease(c.Context(), &s.serving)
	m.ChangeZones(plugin.OriginsFromArgsOrServerBlock(nil, c.ServerBlockKeys), nil)
	config := dnsserver.GetConfig(c)
	config.AddPlugin(func(next plugin.Handler) plugin.Handler {
		m.Next = next
		return m
	})
	c.OnStartup(func() error {
		s.enabled = rowsOf(c.ServerBlockKeys, config)
		if err := m.OnStartup(); err != nil {
			return fmt.Errorf("plugin/%s: %w", pluginName, err)
		}
		return nil
	})
	m.lease.Follow(c)
	return nil
}
