package errors

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

// maxPattern is how long a pattern may be, in octets.
const maxPattern = 10000

// gaveWay are the errors of queries that were given up where too many waited: in a flood, thousands a second, of which a
// line each would tell no more than their number does. They are counted unless a pattern of the block fits.
var gaveWay = regexp.MustCompile(`given up for another query$`)

// crowdPeriod is how often their number is told.
const crowdPeriod = time.Second

func init() { plugin.Register(pluginName, setup) }

// settings is what the directive configures.
type settings struct {
	patterns   []*pattern
	stacktrace bool
	details    bool
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name:    pluginName,
	Once:    true,
	Unknown: "Syntax error: Unexpected token '%[1]s', expecting 'Unknown field %[1]s'",
	Args: corefile.Args[settings]{Syntax: "[stdout]", Max: 1, Set: func(_ *settings, l *corefile.Line) error {
		if len(l.Args) > 0 && l.Args[0] != "stdout" {
			return l.Errf("invalid log file: %s: must be stdout, or left out", l.Args[0])
		}
		return nil
	}},
	Options: corefile.Table[settings]{
		corefile.Flag("stacktrace", "log the stack of a plugin that panics", func(s *settings) { s.stacktrace = true }),
		corefile.Flag("details", "tell the upstream, the transport and the attempts of queries that failed there", func(s *settings) { s.details = true }),
		corefile.Row("consolidate", "DURATION REGEXP [warning|error|info|debug] [show_first]", "log similar errors together", 2, 4,
			func(s *settings, l *corefile.Line) error {
				p, err := parsePattern(l.Args)
				s.patterns = append(s.patterns, p)
				return err
			}),
	},
})

// levels are the levels at which a pattern may log.
var levels = map[string]func(format string, args ...any){
	"warning": logger.Warningf, "error": logger.Errorf, "info": logger.Infof, "debug": logger.Debugf,
}

// parsePattern reads the arguments of consolidate, two at least.
func parsePattern(args []string) (*pattern, error) {
	p := &pattern{log: logger.Errorf}
	var err error
	if p.period, err = time.ParseDuration(args[0]); err != nil {
		return nil, err
	}
	if n := len(args[1]); n > maxPattern {
		return nil, fmt.Errorf("regex pattern too long: %d > %d", n, maxPattern)
	}
	if p.expr, err = regexp.Compile(args[1]); err != nil {
		return nil, err
	}
	leveled := false
	for _, word := range args[2:] {
		level, ok := levels[word]
		switch {
		case ok && p.showFirst:
			return nil, errors.New("log level must come before show_first in consolidate")
		case ok && leveled:
			return nil, errors.New("multiple log levels specified in consolidate")
		case ok:
			p.log, leveled = level, true
		case word == "show_first":
			p.showFirst = true
		default:
			return nil, fmt.Errorf("unknown option in consolidate: %s", word)
		}
	}
	return p, nil
}

func setup(c *caddy.Controller) error {
	var s settings
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	last := &pattern{expr: gaveWay, period: crowdPeriod, showFirst: true, log: logger.Errorf}
	h := &handler{patterns: s.patterns, last: last, details: s.details}
	config := dnsserver.GetConfig(c)
	config.Stacktrace = s.stacktrace
	config.AddPlugin(func(next plugin.Handler) plugin.Handler {
		return &handler{Next: next, patterns: s.patterns, last: last, details: s.details}
	})
	c.OnShutdown(h.stop)
	return nil
}
