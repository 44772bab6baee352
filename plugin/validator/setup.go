package validator

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"

	"github.com/coredns/caddy"

	"github.com/miekg/dns"
)

func init() { plugin.Register(pluginName, setup) }

func setup(c *caddy.Controller) error {
	s := defaults()
	cfg := dnsserver.GetConfig(c)
	s.root = cfg.Root
	if err := directive.Parse(c, s); err != nil {
		return err
	}
	if err := s.finish(); err != nil {
		return plugin.Error(pluginName, err)
	}
	v := newValidator(s)
	v.text = dnsserver.Identity(c, pluginName)
	metrics.FromZero(c, func(server string) {
		if v.counts.server == "" {
			v.counts.server = server
		}
	})
	dnsserver.Check(c, func() error { return v.usable(dnsserver.Configs(c)) })
	v.block = cfg.Block().Chain
	c.OnStartup(func() error {
		v.heed(cfg.Handler("recurse"))
		s.warnEra()
		s.warnUnusable()
		clock.Moved()
		c.OnShutdown(func() error { v.keeper.stop(); return nil })
		return v.start(clock.Now())
	})
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		v.Next = next
		return v
	})
	return nil
}

// heed has v get along with the resolver below, nil if there is none. That starts later, and tells only then what it may.
func (v *Validator) heed(below plugin.Handler) {
	if h, ok := below.(advice.Learner); ok {
		v.learner = h
	}
	if h, ok := below.(advice.Insider); ok {
		v.insider = h
	}
	if h, ok := below.(advice.Guard); ok {
		v.guard = h
	}
	if h, ok := below.(advice.Patient); ok {
		v.patience = h.Patience
	}
	if h, ok := below.(advice.Prefetcher); ok {
		v.prefetches = h.Prefetches
	}
}

func newValidator(s *settings) *Validator {
	v := &Validator{settings: s, counts: &counts{}, patience: patience}
	v.memory, v.failures.most = newMemory(), failureOctets
	s.conf.Memory, s.conf.Negative, s.conf.Inside = v.memory, v.negative, v.inside
	s.conf.CheckCounted = func(algorithm uint8, good bool) {
		v.counts.check(algorithm, good)
		pause()
	}
	v.block = func() []plugin.Handler { return []plugin.Handler{v} }
	v.negatives.path = s.ntaFile
	v.trusts(&trust{anchors: s.anchors})
	v.keeper = newKeeper(v)
	return v
}

// usable reads the files, so that one that is of no use is found before anything begins. all is the server blocks.
func (v *Validator) usable(all []*dnsserver.Config) error {
	_, err := v.negatives.load(clock.Now())
	if err == nil {
		_, err = v.keeper.read()
	}
	for _, cfg := range all {
		if o, ok := cfg.Handler(pluginName).(*Validator); ok && err == nil && v.overwrites(o) {
			err = fmt.Errorf("state %q is that of other anchors in another server block: each needs a file of its own", v.state)
		}
	}
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	return nil
}

// overwrites reports whether v and o would write the states of different anchors into one file, where the last one counts.
// Those of the same anchors come to the same.
func (v *Validator) overwrites(o *Validator) bool {
	return v.state != "" && v.state == o.state && !maps.EqualFunc(v.anchors, o.anchors, func(a, b *validate.Anchor) bool {
		return alike(a.DS, b.DS) && alike(a.Keys, b.Keys)
	})
}

// alike reports whether two lists have the same in any order.
func alike(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// start begins with what needs time and files.
func (v *Validator) start(now time.Time) error {
	if _, err := v.negatives.load(now); err != nil {
		return plugin.Error(pluginName, err)
	}
	for name, d := range v.nta {
		_ = v.negatives.set(name, now.Add(d), false)
	}
	if err := v.keeper.start(); err != nil {
		return plugin.Error(pluginName, err)
	}
	return nil
}

// log tells of a bogus reply.
func (v *Validator) log(q validate.Question, verdict *validate.Verdict, server netip.AddrPort) {
	if !v.mayLog() {
		return
	}
	zone := "-"
	if verdict.Zone != "" {
		zone = rrset.Text(verdict.Zone)
	}
	from := "-"
	if server.IsValid() {
		from = server.String()
	}
	logger.Warningf("%s %s is bogus, zone %s, server %s: %d %s", rrset.Text(q.Name), dns.Type(q.Type), zone, from, verdict.Code, verdict.Text)
}
