package loadbalance

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

const (
	roundRobin    = "round_robin"
	weighted      = "weighted"
	defaultReload = 30 * time.Second
)

// settings is what the Corefile says.
type settings struct {
	policy *policy
	root   string
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[round_robin | weighted WEIGHTFILE]", Max: -1, Set: setPolicy},
	Options: corefile.Table[settings]{
		corefile.Row("reload", "DURATION", "look at the weight file so often whether it was changed; 0 never does", 0, -1, setReload),
		corefile.Row("prefer", "CIDR...", "put addresses in these networks first", 0, -1, setPrefer),
	},
	Check: func(s *settings) error {
		f := s.policy.weights
		if f == nil {
			return nil
		}
		_, err := f.load()
		if errors.Is(err, errOpen) && f.every > 0 {
			f.warn(err)
			return nil
		}
		return err
	},
})

func setPolicy(s *settings, l *corefile.Line) error {
	s.policy = new(policy)
	if len(l.Args) == 0 {
		return nil
	}
	switch name, args := l.Args[0], l.Args[1:]; {
	case name == roundRobin && len(args) > 0, name == weighted && len(args) > 1:
		return errors.New("unexpected argument(s)")
	case name == roundRobin:
		return nil
	case name == weighted && len(args) == 0:
		return errors.New("missing weight file argument")
	case name == weighted:
		s.policy.weights = &weightFile{path: corefile.Below(s.root, args[0]), every: defaultReload}
		return nil
	default:
		return fmt.Errorf("unknown policy: %s%s", name, corefile.Choice(name, []string{roundRobin, weighted}))
	}
}

func setReload(s *settings, l *corefile.Line) error {
	f := s.policy.weights
	if f == nil {
		return fmt.Errorf("unknown property for %s: reload (allowed: prefer)", roundRobin)
	}
	switch len(l.Args) {
	case 0:
		return errors.New("reload duration value is missing")
	case 1:
	default:
		return errors.New("unexpected argument")
	}
	d, err := time.ParseDuration(l.Args[0])
	if err != nil || d < 0 {
		return fmt.Errorf("invalid reload duration '%s'", l.Args[0])
	}
	f.every = d
	return nil
}

func setPrefer(s *settings, l *corefile.Line) error {
	if len(l.Args) == 0 {
		return errors.New("prefer needs at least one CIDR")
	}
	for _, a := range l.Args {
		if _, err := netip.ParsePrefix(a); err != nil {
			return fmt.Errorf("invalid CIDR %q: %w", a, err)
		}
		n, _ := corefile.ParseSource(a) // which takes single addresses, too
		s.policy.prefer = append(s.policy.prefer, n.Masked())
	}
	return nil
}

func setup(c *caddy.Controller) error {
	cfg := dnsserver.GetConfig(c)
	s := settings{root: cfg.Root}
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	if f := s.policy.weights; f != nil && f.every > 0 {
		watchFile(c, f)
	}
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		return LoadBalance{Next: next, policy: s.policy}
	})
	return nil
}

func watchFile(c *caddy.Controller, f *weightFile) {
	stop := make(chan struct{})
	var watcher sync.WaitGroup
	c.OnStartup(func() error {
		watcher.Go(func() { f.watch(stop) })
		c.OnShutdown(func() error {
			close(stop)
			watcher.Wait()
			return nil
		})
		return nil
	})
}
