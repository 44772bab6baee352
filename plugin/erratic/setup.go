package erratic

import (
	"fmt"
	"strconv"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

// Which queries are hit if the Corefile does not say.
const (
	defaultAmount = 2
	defaultDelay  = 100 * time.Millisecond
)

func init() { plugin.Register(pluginName, setup) }

// settings is what the directive configures.
type settings struct {
	faults
	zones   []string
	dropSet bool // drop was given with an amount
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[ZONES...]", Max: -1, Set: func(s *settings, l *corefile.Line) error {
		for _, arg := range l.Args {
			zones := plugin.Host(arg).NormalizeExact()
			if _, err := strconv.Atoi(arg); err == nil || len(zones) == 0 {
				return fmt.Errorf("not a zone: %q", arg) // amounts are those of options
			}
			s.zones = append(s.zones, zones...)
		}
		return nil
	}},
	Options: corefile.Table[settings]{
		corefile.Row("drop", "[AMOUNT]", "drop one of so many queries", 0, 1, func(s *settings, l *corefile.Line) (err error) {
			s.dropSet = s.dropSet || len(l.Args) > 0
			s.drop, err = amount(l)
			return err
		}),
		corefile.Row("truncate", "[AMOUNT]", "truncate one of so many replies", 0, 1, func(s *settings, l *corefile.Line) (err error) {
			s.truncate, err = amount(l)
			return err
		}),
		corefile.Row("delay", "[AMOUNT [DURATION]]", "delay one of so many replies", 0, 2, func(s *settings, l *corefile.Line) (err error) {
			s.duration = defaultDelay
			if len(l.Args) > 1 {
				if s.duration, err = time.ParseDuration(l.Args[1]); err != nil {
					return err
				}
			}
			s.delay, err = amount(l)
			return err
		}),
		corefile.Flag("large", "answer with many records", func(s *settings) { s.large = true }),
	},
})

// amount is the first argument, or the default.
func amount(l *corefile.Line) (uint64, error) {
	if len(l.Args) == 0 {
		return defaultAmount, nil
	}
	n, err := strconv.ParseInt(l.Args[0], 10, 32)
	if err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, fmt.Errorf("illegal amount value given %q", l.Args[0])
	}
	return uint64(n), nil
}

func parse(c *caddy.Controller) (*Erratic, error) {
	s := settings{faults: faults{drop: defaultAmount}}
	if err := directive.Parse(c, &s); err != nil {
		return nil, err
	}
	if (s.delay > 0 || s.truncate > 0) && !s.dropSet {
		s.drop = 0
	}
	return &Erratic{faults: s.faults, zones: s.zones}, nil
}

func setup(c *caddy.Controller) error {
	e, err := parse(c)
	if err != nil {
		return err
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		e.Next = next
		return e
	})
	return nil
}
