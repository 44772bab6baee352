package template

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/upstream"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

var logger = log.NewWithPlugin(pluginName)

func init() { plugin.Register(pluginName, setup) }

// maxRegex is the longest regex that is taken, in octets.
const maxRegex = 10000

// settings is one directive.
type settings struct {
	template
	keys     []string
	compiler compiler
	never    []string // what is wrong with texts that can never be a record
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name:    pluginName,
	Args:    corefile.Args[settings]{Syntax: "CLASS TYPE [ZONE...]", Min: 2, Max: -1, Set: setQuestion},
	Unknown: corefile.UnknownAsCount,
	Options: corefile.Table[settings]{
		corefile.Row("match", "REGEX...", "the names it is for, lower case and with a dot at the end", 1, -1, addRegexes),
		corefile.Row("var", "NAME EXPRESSION", "a value for later expressions and the templates' .Var", 2, -1, addVariable),
		corefile.Row("expr", "EXPRESSION", "a condition that has to be true", 1, -1, addCondition),
		corefile.Row("answer", "RR", "a template of a record of the answer section", 1, -1, addRecords(answer)),
		corefile.Row("additional", "RR", "a template of a record of the additional section", 1, -1, addRecords(additional)),
		corefile.Row("authority", "RR", "a template of a record of the authority section", 1, -1, addRecords(authority)),
		corefile.Row("rcode", "CODE", "the return code", 1, 1, setRcode),
		corefile.Row("ederror", "EXTENDED_ERROR_CODE [EXTRA_REASON]", "an extended DNS error", 1, 2, setError),
		corefile.Fallthrough(func(s *settings, zones []string) { s.fall.SetZonesFromArgs(zones) }),
		corefile.Ignored[settings]("upstream"),
	},
})

func setQuestion(s *settings, l *corefile.Line) (err error) {
	s.compiler = newCompiler()
	s.upstream = upstream.New()
	var ok bool
	if s.class, ok = dns.StringToClass[l.Args[0]]; !ok {
		return fmt.Errorf("invalid query class %s%s", l.Args[0], corefile.ClassChoice(l.Args[0]))
	}
	if s.qtype, ok = dns.StringToType[l.Args[1]]; !ok {
		return fmt.Errorf("invalid RR class %s%s", l.Args[1], corefile.TypeChoice(l.Args[1]))
	}
	s.zones, err = plugin.ZonesFromArgs(l.Args[2:], s.keys)
	return err
}

func addRegexes(s *settings, l *corefile.Line) error {
	for _, text := range l.Args {
		if len(text) > maxRegex {
			return fmt.Errorf("regex pattern too long: %d > %d", len(text), maxRegex)
		}
		r, err := regexp.Compile(text)
		if err != nil {
			return fmt.Errorf("could not parse regex: %s, %w", text, err)
		}
		s.regex = append(s.regex, r)
	}
	return nil
}

func addVariable(s *settings, l *corefile.Line) error {
	v, err := s.compiler.variable(l.Args[0], strings.Join(l.Args[1:], " "))
	s.vars = append(s.vars, v)
	return err
}

func addCondition(s *settings, l *corefile.Line) error {
	p, err := s.compiler.condition(strings.Join(l.Args, " "))
	s.conditions = append(s.conditions, p)
	return err
}

func addRecords(section int) func(*settings, *corefile.Line) error {
	return func(s *settings, l *corefile.Line) error {
		for _, text := range l.Args {
			r, err := newRecord(text)
			if err != nil {
				return err
			}
			if r.never != nil {
				s.never = append(s.never, fmt.Sprintf("%s: %s %q is never a record, and gives SERVFAIL: %v: must be NAME [TTL] [CLASS] TYPE RDATA, as in a zone file",
					l.Place(), l.Name(), text, r.never))
			}
			s.sections[section] = append(s.sections[section], r)
		}
		return nil
	}
}

func setRcode(s *settings, l *corefile.Line) (err error) {
	code, ok := dns.StringToRcode[l.Args[0]]
	if !ok {
		return fmt.Errorf("unknown rcode %s%s", l.Args[0], corefile.RcodeChoice(l.Args[0]))
	}
	s.rcode = code
	return nil
}

func setError(s *settings, l *corefile.Line) error {
	n, err := strconv.ParseUint(l.Args[0], 10, 16)
	if err != nil {
		return fmt.Errorf("error parsing extended DNS error code %s, %w", l.Args[0], err)
	}
	s.ede = &dns.EDNS0_EDE{InfoCode: uint16(n)}
	if len(l.Args) == 2 {
		s.ede.ExtraText = l.Args[1]
	}
	return nil
}

func newHandler(c *caddy.Controller) (Handler, error) {
	all, err := directive.ParseEach(c, settings{keys: c.ServerBlockKeys})
	if err != nil {
		return Handler{}, err
	}
	h := Handler{}
	for i := range all {
		t := all[i].template
		if t.rcode != dns.RcodeServerFailure { // which is sent without records
			for _, what := range all[i].never {
				logger.Warning(what)
			}
		}
		if len(t.regex) == 0 {
			t.regex = []*regexp.Regexp{anyName}
		}
		t.remember()
		t.settle()
		h.Templates = append(h.Templates, t)
		for _, z := range t.zones {
			if !slices.Contains(h.Zones, z) {
				h.Zones = append(h.Zones, z)
			}
		}
	}
	return h, nil
}

func setup(c *caddy.Controller) error {
	h, err := newHandler(c)
	if err != nil {
		return err
	}
	cfg := dnsserver.GetConfig(c)
	c.OnStartup(func() error {
		for _, server := range dnsserver.Labels(c.ServerBlockKeys, cfg) {
			for i := range h.Templates {
				h.Templates[i].countFrom0(server, cfg.ViewName)
			}
		}
		return nil
	})
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		h.Next = next
		return h
	})
	return nil
}
