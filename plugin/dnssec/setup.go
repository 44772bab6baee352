package dnssec

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/cache"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func init() { plugin.Register(pluginName, setup) }

const defaultCapacity = 10000

// settings is what a directive says.
type settings struct {
	zones    []string
	keys     []*DNSKEY
	capacity int
	compact  bool
	root     string // the folder of relative names
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[settings]{Syntax: "[ZONES...]", Max: -1, Set: func(s *settings, l *corefile.Line) (err error) {
		s.zones, err = plugin.ZonesFromArgs(l.Args, l.Controller().ServerBlockKeys)
		plugin.Zones(s.zones).Respell()
		return err
	}},
	Options: corefile.Table[settings]{
		corefile.Row("key", "file|aws_secretsmanager KEY...", "keys to sign with, from files or from AWS Secrets Manager", 2, -1, addKeys),
		corefile.Row("cache_capacity", "CAPACITY", "how many signatures are kept", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			s.capacity, err = strconv.Atoi(l.Arg(0))
			return err
		}),
		corefile.Enum("denial", []string{"blacklies", "compact"}, "how it is proved that something does not exist", func(s *settings, word string) {
			s.compact = word == "compact"
		}),
	},
	Check: func(s *settings) error {
		for _, k := range s.keys {
			if !k.fits(s.zones) {
				return fmt.Errorf("key %s (keyid: %d) can not sign any of the zones", k.K.Hdr.Name, k.tag)
			}
		}
		return nil
	},
})

// fits reports whether one of the zones is the key's owner or lies below it.
func (k *DNSKEY) fits(zones []string) bool {
	for _, z := range zones {
		if plugin.Name(k.K.Hdr.Name).Matches(z) {
			return true
		}
	}
	return false
}

func addKeys(s *settings, l *corefile.Line) error {
	for _, name := range l.Args[1:] {
		var k *DNSKEY
		var err error
		switch l.Arg(0) {
		case "file":
			pub, priv := keyFiles(name, s.root)
			k, err = ParseKeyFile(pub, priv)
		case "aws_secretsmanager":
			ctx, cancel := context.WithCancel(context.Background())
			dnsserver.OnEnding(l.Controller(), cancel)
			k, err = secretKey(ctx, name)
			cancel()
		default:
			return fmt.Errorf("unknown source of keys %q (allowed: file, aws_secretsmanager)", l.Arg(0))
		}
		if err != nil {
			return err
		}
		// A key that is named twice, as by both of its files, would sign all twice.
		if !slices.ContainsFunc(s.keys, func(o *DNSKEY) bool { return dns.IsDuplicate(o.K, k.K) }) {
			s.keys = append(s.keys, k)
		}
	}
	return nil
}

func setup(c *caddy.Controller) error {
	config := dnsserver.GetConfig(c)
	s := settings{capacity: defaultCapacity, root: config.Root}
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	d := New(s.zones, s.keys, splits(s.keys), nil, cache.New[[]dns.RR](s.capacity))
	d.compact = s.compact
	// The cache would give one client's rcode to others.
	d.keepsRcodes = func() bool { return config.Handler("cache") == nil }
	c.OnStartup(func() error {
		k := keep(d.sigs)
		servers := dnsserver.Labels(c.ServerBlockKeys, config)
		c.OnShutdown(func() error {
			k.close()
			d.sigs.end(servers)
			return nil
		})
		d.sigs.keeper = k
		d.sigs.begin(servers)
		return nil
	})
	config.AddPlugin(func(next plugin.Handler) plugin.Handler {
		signs := d
		signs.Next = next
		return signs
	})
	return nil
}
