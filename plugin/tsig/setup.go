package tsig

import (
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/keyring"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says.
type settings struct {
	zones   []string
	secrets map[string]string // of the Corefile, base64 by key name
	files   []*keyFile
	reload  time.Duration // how often files are looked at; 0: never again
	demand  demand
	forward bool // times of signatures must not go back
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[settings]{Syntax: "[ZONES...]", Max: -1, Set: func(s *settings, l *corefile.Line) (err error) {
		s.zones, err = plugin.ZonesFromArgs(l.Args, l.Controller().ServerBlockKeys)
		return err
	}},
	Options: corefile.Table[settings]{
		corefile.Row("secret", "NAME KEY", "a key by name, with its secret in base64", 2, 2, func(s *settings, l *corefile.Line) error {
			return s.add(dns.CanonicalName(l.Arg(0)), l.Arg(1))
		}),
		corefile.Row("secrets", "FILE", "keys from a file, as BIND has them", 1, 1, func(s *settings, l *corefile.Line) error {
			return s.addFile(l.Arg(0))
		}),
		corefile.Duration("reload", 0, 24*time.Hour, "look at the files so often whether they were changed; 0 never does", func(s *settings, d time.Duration) { s.reload = d }),
		corefile.Flag("monotonic", "refuse signatures that are older than the last good one of their key", func(s *settings) { s.forward = true }),
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
	if s.has(name) {
		return fmt.Errorf("key %q redefined", name)
	}
	if secret == "" { // of a variable of the environment that is not set, say; anybody could sign with it
		return fmt.Errorf("expected secret for key %q: it is empty", name)
	}
	doubt(name, secret)
	if s.secrets == nil {
		s.secrets = map[string]string{}
	}
	s.secrets[name] = secret
	return nil
}

// doubt warns of a secret that can be none. CoreDNS takes it, and refuses all that is signed with it.
func doubt(name, secret string) {
	if _, err := base64.StdEncoding.DecodeString(secret); err != nil {
		logger.Warningf("The secret of key %q is not in base64: no signature made with it is taken", name)
	}
}

// addFile reads a file of keys.
func (s *settings) addFile(name string) error {
	f := &keyFile{path: name}
	if err := f.read(); err != nil {
		return err
	}
	for name := range f.keys {
		if s.has(name) {
			return fmt.Errorf("key %q redefined", name)
		}
	}
	s.files = append(s.files, f)
	return nil
}

// has reports whether there is a key of a name.
func (s *settings) has(name string) bool {
	_, ok := s.secrets[name]
	return ok || slices.ContainsFunc(s.files, func(f *keyFile) bool { _, ok := f.keys[name]; return ok })
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
	config.TsigKeys = new(keyring.Ring)
	keeper := newKeeper(s.files, config.TsigKeys)
	if s.reload > 0 {
		c.OnStartup(func() error {
			keeper.start(s.reload)
			c.OnShutdown(func() error {
				keeper.stop()
				return nil
			})
			return nil
		})
	} else {
		for _, f := range s.files {
			for name, k := range f.keys {
				config.TsigSecret[name] = k.Secret
			}
		}
	}
	config.AddPlugin(func(next plugin.Handler) plugin.Handler {
		t := &TSIGServer{Zones: s.zones, Next: next, demand: s.demand}
		if s.forward {
			t.clock = new(lastTimes)
		}
		return t
	})
	return nil
}
