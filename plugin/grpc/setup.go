package grpc

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/policy"
	pkgtls "github.com/coredns/coredns/plugin/pkg/tls"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/within"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// maxUpstreams is how many upstreams a directive may have.
const maxUpstreams = 15

// settings is what a directive says.
type settings struct {
	GRPC
	targets    []string
	tls        *tls.Config
	serverName string
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[settings]{Syntax: "FROM TO...", Min: 2, Max: -1, Set: func(s *settings, l *corefile.Line) (err error) {
		if s.zones.From, err = zone(l.Args[0]); err != nil {
			return err
		}
		if s.targets, err = parse.HostPortOrFile(l.Args[1:]...); err != nil {
			return err
		}
		for i, t := range s.targets {
			s.targets[i] = address(t)
		}
		if n := len(s.targets); n > maxUpstreams {
			return fmt.Errorf("more than %d TOs configured: %d", maxUpstreams, n)
		}
		return nil
	}},
	Options: corefile.Table[settings]{
		corefile.Row("except", "NAMES...", "names below FROM that are not asked for", 1, -1, func(s *settings, l *corefile.Line) error {
			for _, a := range l.Args {
				name, err := zone(a)
				if err != nil {
					return err
				}
				s.zones.Except(name)
			}
			return nil
		}),
		corefile.Row("tls", "[CA | CERT KEY | CERT KEY CA]", "files for TLS", 0, 3, func(s *settings, l *corefile.Line) (err error) {
			root := dnsserver.GetConfig(l.Controller()).Root
			s.tls, err = pkgtls.NewTLSConfigFromArgs(corefile.AllBelow(root, l.Args)...)
			return err
		}),
		corefile.String("tls_servername", "NAME", "the name that certificates must be for", func(s *settings, v string) { s.serverName = v }),
		corefile.Row("policy", "random|round_robin|sequential|fastest", "the order in which upstreams are asked", 1, 1, func(s *settings, l *corefile.Line) error {
			if s.policy = policy.Named(l.Args[0]); s.policy == nil {
				return fmt.Errorf("unknown policy '%s': must be one of %s", l.Args[0], strings.Join(policy.Names, ", "))
			}
			return nil
		}),
		corefile.Flag("hedge", "ask a second upstream if the first one takes longer than 95 % of its replies", func(s *settings) { s.hedge = true }),
		corefile.Fallthrough(func(s *settings, zones []string) { s.Fall.SetZonesFromArgs(zones) }),
	},
	Check: func(s *settings) error {
		s.hedge = s.hedge || s.policy.String() == "fastest"
		if s.tls != nil && s.serverName != "" {
			s.tls.ServerName = s.serverName
		}
		return nil
	},
})

// address is text, an address as package parse has it, without dns:// or grpc://, and with the default port if its port is
// empty. That of another scheme is nowhere, but beside others that are it keeps no server from starting.
func address(text string) string {
	trans, rest := parse.Transport(text)
	port := transport.Port
	switch trans {
	case transport.DNS:
	case transport.GRPC:
		port = transport.GRPCPort
	default:
		return text
	}
	if strings.HasSuffix(rest, ":") {
		rest += port
	}
	return rest
}

// zone is the lower-case name of one zone, or of the first one of a network.
func zone(text string) ([]byte, error) { return within.Zone(text, plugin.Host(text).NormalizeExact()) }

func setup(c *caddy.Controller) error {
	s := settings{GRPC: GRPC{policy: policy.Named("random")}}
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	g := &s.GRPC
	dnsserver.OnEnd(c, func() error {
		var errs []error
		for _, p := range g.proxies {
			errs = append(errs, p.stop())
		}
		return errors.Join(errs...)
	})
	for _, addr := range s.targets {
		p, err := newProxy(addr, s.tls)
		if err != nil {
			return plugin.Error(pluginName, err)
		}
		if g.hedge {
			hedges.WithLabelValues(addr)
		}
		g.proxies = append(g.proxies, p)
	}
	c.OnStartup(func() error {
		g.details = plugin.TellsDetails(dnsserver.GetConfig(c).Handler("errors"))
		return nil
	})
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		g.Next = next
		return g
	})
	return nil
}
