package tsig

import (
	"fmt"
	"os"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says.
type settings struct {
	zones   []string
	secrets map[string]string // base64 by key name
	demand  demand
}

var directive = corefile.Define(corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[settings]{Syntax: "[ZONES...]", Max: -1, Set: func(s *settings, l *corefile.Line) error {
		s.zones = plugin.OriginsFromArgsOrServerBlock(l.Args, l.Controller().ServerBlockKeys)
		return nil
	}},
	Options: corefile.Table[settings]{
		corefile.Row("secret", "NAME KEY", "a key by name, with its secret in base64", 2, 2, func(s *settings, l *corefile.Line) error {
			return s.add(dns.CanonicalName(l.Arg(0)), l.Arg(1))
		}),
		corefile.Row("secrets", "FILE", "keys from a file, as BIND has them", 1, 1, func(s *settings, l *corefile.Line) error {
			return s.addFile(l.Arg(0))
		}),
		corefile.Row("require", "[QTYPE...|all|none]", "the query types that have to be signed", 1, -1, func(s *settings, l *corefile.Line) (err error) {
			s.demand.types, err = setOf(l.Args, dns.StringToType, "query type")
			return err
		}),
		corefile.Row("require_opcode", "[OPCODE...|all|none]", "the opcodes that have to be signed", 1, -1, func(s *settings, l *corefile.Line) (err error) {
			s.demand.opcodes, err = setOf(l.Args, dns.StringToOpcode, "opcode")
			return err
		}),
	},
})

func (s *settings) add(name, secret string) error {
	if _, ok := s.secrets[name]; ok {
		return fmt.Errorf("key %q redefined", name)
	}
	if s.secrets == nil {
		s.secrets = map[string]string{}
	}
	s.secrets[name] = secret
	return nil
}

func (s *settings) addFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	defer f.Close()
	secrets, err := parseKeyFile(f)
	if err != nil {
		return fmt.Errorf("secrets: %s: %w", name, err)
	}
	for name, secret := range secrets {
		if err := s.add(name, secret); err != nil {
			return err
		}
	}
	return nil
}

// setOf is the set of the numbers that words stand for.
func setOf[N uint16 | int](words []string, numbers map[string]N, what string) (s set, err error) {
	s.some = map[uint16]bool{}
	for _, word := range words {
		switch n, ok := numbers[word]; {
		case word == "all":
			return set{all: true}, nil
		case word == "none":
			return set{}, nil
		case !ok:
			return set{}, fmt.Errorf("unknown %s '%s' (all, none, or mnemonics in upper case)", what, word)
		default:
			s.some[uint16(n)] = true
		}
	}
	return s, nil
}

func setup(c *caddy.Controller) error {
	var s settings
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	config := dnsserver.GetConfig(c)
	if config.TsigSecret == nil {
		config.TsigSecret = map[string]string{}
	}
	for name, secret := range s.secrets {
		config.TsigSecret[name] = secret
	}
	config.AddPlugin(func(next plugin.Handler) plugin.Handler {
		return &TSIGServer{Zones: s.zones, Next: next, demand: s.demand}
	})
	return nil
}
