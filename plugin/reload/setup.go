package reload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/stamp"

	"github.com/coredns/caddy"
)

// How often the Corefile is looked at.
const (
	defaultInterval = 30 * time.Second
	defaultJitter   = 15 * time.Second
	minInterval     = 2 * time.Second
	minJitter       = time.Second
)

func init() { plugin.Register(pluginName, setup) }

// settings is what the directive configures.
type settings struct {
	interval, jitter time.Duration
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[INTERVAL] [JITTER]", Max: 2, Set: func(s *settings, l *corefile.Line) (err error) {
		if len(l.Args) > 0 {
			if s.interval, err = time.ParseDuration(l.Args[0]); err != nil {
				return err
			}
		}
		if s.interval < minInterval {
			return fmt.Errorf("interval value must be greater or equal to 2s: %s", l.Args[0])
		}
		if len(l.Args) > 1 {
			if s.jitter, err = time.ParseDuration(l.Args[1]); err != nil {
				return err
			}
		}
		if s.jitter != 0 && s.jitter < minJitter {
			return fmt.Errorf("jitter value must be 0 or greater or equal to 1s: %s", l.Args[1])
		}
		return nil
	}},
})

// draw is the interval with a part of the jitter added or taken away, so that many servers do not look at once.
func (s settings) draw() time.Duration {
	jitter := min(s.jitter, s.interval/2)
	if jitter == 0 {
		return s.interval
	}
	return s.interval - jitter/2 + rand.N(jitter)
}

// planKey is the key of an instance's plan.
type planKey struct{}

// plan is what the setup of an instance leaves for the hook: how to watch, and how to end it.
type plan struct {
	running string // hash of the configuration that the instance was set up with; "" if there is none
	unread  error  // why there is none

	mu       sync.Mutex
	interval time.Duration
	watcher  *watcher // nil before the instance is up
	over     bool     // the instance is shut down
}

func setup(c *caddy.Controller) error {
	s := settings{interval: defaultInterval, jitter: defaultJitter}
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	p, ok := c.Get(planKey{}).(*plan)
	if !ok {
		p = new(plan)
		// Now, and not when the instance is up: what is imported may change while plugins start.
		if input := dnsserver.Instance(c).Caddyfile(); input != nil {
			p.running, p.unread = hash(input)
		}
		c.Set(planKey{}, p)
		c.OnShutdown(p.end)
		c.OnFinalShutdown(p.end) // the process is to end: nothing is taken over any more
		c.OnRestart(func() error { registerHook(); return nil })
	}
	p.interval = s.draw() // that of the last block counts
	registerHook()
	return nil
}

// registerHook sees to it that onEvent is registered: a reload by signal takes all hooks away before the next instance
// is set up, or while it is, if that is begun by another reload.
func registerHook() {
	defer func() { _ = recover() }() // it was registered
	caddy.RegisterEventHook(pluginName, onEvent)
}

// onEvent begins to watch when an instance is up that wants it.
func onEvent(event caddy.EventName, info any) error {
	i, ok := info.(*caddy.Instance)
	if event != caddy.InstanceStartupEvent || !ok {
		return nil
	}
	i.StorageMu.RLock()
	p, ok := i.Storage[planKey{}].(*plan)
	i.StorageMu.RUnlock()
	if !ok {
		return nil
	}
	return p.begin(i)
}

// begin starts the watcher of an instance, unless that has been shut down meanwhile.
func (p *plan) begin(i *caddy.Instance) error {
	now := p.running
	if p.unread != nil {
		return p.unread
	}
	logger.Infof("Running configuration SHA512 = %s", now)
	showVersion(p, now)
	w := &watcher{
		load: func() (caddy.Input, error) { return dnsserver.Reread(i) },
		restart: func(input caddy.Input) error {
			next, err := i.Restart(input)
			switch {
			case errors.Is(err, dnsserver.ErrReplaced):
				return nil // the next instance has a watcher of its own
			case next == nil && err == nil: // caddy has recovered, and logged from what
				return errPanic
			}
			return corefile.Explain(err, input.Path(), input.Body(), caddy.ValidDirectives(input.ServerType()))
		},
		running: now, tried: now,
		quit: make(chan struct{}),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over && p.watcher == nil {
		p.watcher = w
		w.quiet = min(stamp.Quiet, p.interval/4) // which lengthens the time until it is taken over
		go w.run(p.interval)
	}
	return nil
}

var errPanic = errors.New("a plugin panicked")

// end stops the watcher, and takes back what the metrics tell of the instance.
func (p *plan) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.watcher != nil {
		p.watcher.stop()
	}
	hideVersion(p)
	return nil
}
