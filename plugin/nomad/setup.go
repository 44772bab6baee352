package nomad

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

const maxTTL = 3600

// settings is what a directive says.
type settings struct {
	zone      string
	addresses []string
	filter    string
	token     string
	ttl       uint32
}

var options = corefile.Table[settings]{
	corefile.Row("address", "URL...", "where agents are (http://127.0.0.1:4646)", 0, -1, func(s *settings, l *corefile.Line) error {
		if len(l.Args) == 0 {
			return errors.New("at least one address is required")
		}
		s.addresses = append(s.addresses, l.Args...)
		return nil
	}),
	corefile.Row("filter", "FILTER", "an expression that instances must fulfil", 0, -1, func(s *settings, l *corefile.Line) (err error) {
		s.filter, err = one(l, "filter")
		return err
	}),
	corefile.Row("token", "TOKEN", "who asks", 0, -1, func(s *settings, l *corefile.Line) (err error) {
		s.token, err = one(l, "token")
		return err
	}),
	corefile.Row("ttl", "SECONDS", "of all records (30)", 0, -1, func(s *settings, l *corefile.Line) error {
		text, err := one(l, "ttl value")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("error parsing ttl: %w", err)
		}
		if n < 0 || n > maxTTL {
			return fmt.Errorf("ttl must be in range [0, %d]: %d", maxTTL, n)
		}
		s.ttl = uint32(n)
		return nil
	}),
}

func one(l *corefile.Line, what string) (string, error) {
	if len(l.Args) != 1 {
		return "", fmt.Errorf("exactly one %s is required", what)
	}
	return l.Arg(0), nil
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[ZONE]", Max: -1, Set: func(s *settings, l *corefile.Line) error {
		if len(l.Args) == 0 {
			return nil
		}
		zones, err := plugin.ZonesFromArgs(l.Args[:1], nil)
		if err == nil {
			plugin.Zones(zones).Respell()
			s.zone = zones[0]
		}
		return err
	}},
	Options:  options,
	Unlisted: func(s *settings, l *corefile.Line) (bool, error) { return corefile.Fold(options, s, l) },
})

func setup(c *caddy.Controller) error {
	s := settings{zone: defaultZone, ttl: defaultTTL}
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	if len(s.addresses) == 0 {
		s.addresses = []string{""}
	}
	all := new(agents)
	for _, address := range s.addresses {
		a, err := newAgent(address, s.token)
		if err != nil {
			return plugin.Error(pluginName, err)
		}
		all.all = append(all.all, a)
	}
	n := &Nomad{Zone: s.zone, ttl: s.ttl, agents: all, catalog: newCatalogue(all, s.filter), kin: s.kin()}
	c.OnRestart(func() error { n.offer(); return nil })
	c.OnRestartFailed(func() error { n.withdraw(); return nil })
	c.OnStartup(func() error {
		n.inherit()
		c.OnShutdown(func() error {
			n.withdraw()
			n.catalog.stop()
			all.close()
			return nil
		})
		n.catalog.running.Go(func() {
			if err := all.probe(n.catalog.ctx); err != nil && n.catalog.ctx.Err() == nil {
				logger.Warningf("No agent answers: %v", err)
			}
		})
		return nil
	})
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		n.Next = next
		return n
	})
	return nil
}
