package rewrite

import (
	"fmt"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/edns"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// settings is one directive: one rule.
type settings struct {
	args  []string // of the line, and then of the block
	alone bool     // the line has all of it, and there must be no block
	rule  Rule
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[continue|stop] FIELD ARGS...", Max: -1, Set: func(s *settings, l *corefile.Line) error {
		s.args, s.alone = l.Args, len(l.Args) > 1
		return nil
	}},
	Unlisted: func(s *settings, l *corefile.Line) (bool, error) {
		s.args = append(append(s.args[:len(s.args):len(s.args)], l.Name()), l.Args...)
		return !s.alone, nil
	},
	Check: func(s *settings) (err error) {
		if s.rule, err = newRule(s.args); err != nil && !strings.Contains(err.Error(), "allowed:") {
			err = fmt.Errorf("%w (given: rewrite %s; usage: %s)", err, strings.Join(s.args, " "), usage(s.args))
		}
		return err
	},
})

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, settings{})
	if err != nil {
		return err
	}
	var rules []Rule
	for _, s := range all {
		rules = append(rules, s.rule)
		if o, ok := s.rule.(*optionRule); ok && o.kind == localOption && !o.revert && o.action != Unset {
			edns.SetSupportedOption(o.code) // what is not taken back may come back from the client
		}
	}
	cfg, b := dnsserver.GetConfig(c), new(block)
	c.OnStartup(func() error { b.validates = cfg.Handler("validator") != nil; return nil })
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		return Rewrite{Next: next, Rules: rules, RevertPolicy: NewRevertPolicy(false, false), block: b}
	})
	return nil
}
