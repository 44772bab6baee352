package acl

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func init() { plugin.Register(pluginName, setup) }

// settings is one directive.
type settings struct {
	rule
	keys []string // of the server block
}

// maxSOATTL is a day: a denial that rests on configuration should not outlive it by much.
const maxSOATTL = 86400

var directive = corefile.Define(&corefile.Directive[settings]{
	Name:           pluginName,
	Args:           corefile.Args[settings]{Syntax: "[ZONES...]", Max: -1, Set: setZones},
	Unlisted:       addPolicy, // words of any case, which rows do not have
	UnlistedSyntax: "allow|block|filter|drop [type QTYPE...] [net SOURCE...]",
	Options: corefile.Table[settings]{
		corefile.Flag("asked", "also for queries that asked for a name in ZONES before it was rewritten", func(s *settings) { s.asked = true }),
		corefile.Row("soa", "TTL", "filter with an SOA record, so that resolvers keep the denial for TTL seconds", 1, 1, func(s *settings, l *corefile.Line) error {
			ttl, err := corefile.ParseInt("soa", l.Args[0], 1, maxSOATTL)
			s.soaTTL = uint32(ttl)
			return err
		}),
	},
})

func setZones(s *settings, l *corefile.Line) error {
	zones, err := plugin.ZonesFromArgs(l.Args, s.keys)
	if err != nil {
		return err
	}
	for _, z := range zones {
		name, err := wire.LowerName(z)
		if err != nil {
			return fmt.Errorf("invalid zone %q: %w", z, err)
		}
		s.zones = append(s.zones, zone{name: name, text: z})
	}
	if len(s.zones) > fewZones {
		s.index = new(wire.Suffixes[int])
		for i, z := range s.zones {
			s.index.Set(z.name, i)
		}
	}
	return nil
}

// addPolicy reads a line of the block.
func addPolicy(s *settings, l *corefile.Line) (bool, error) {
	p, err := parsePolicy(l.Name(), l.Args)
	if err != nil {
		return true, err
	}
	s.policies = append(s.policies, p)
	return true, nil
}

// parsePolicy reads an action and its sections.
func parsePolicy(word string, args []string) (policy, error) {
	p := policy{sources: sources{all: true}}
	switch strings.ToLower(word) {
	case "allow":
		p.action = allow
	case "block":
		p.action = block
	case "filter":
		p.action = filter
	case "drop":
		p.action = drop
	default:
		return p, fmt.Errorf("unexpected token %q; expect 'allow', 'block', 'filter' or 'drop'%s", word, corefile.Meant(strings.ToLower(word), []string{"allow", "block", "filter", "drop"}))
	}
	var sections struct{ types, networks []string }
	for len(args) > 0 {
		words := &sections.types
		section := strings.ToLower(args[0])
		switch section {
		case "type":
		case "net":
			words = &sections.networks
		default:
			return p, fmt.Errorf("unexpected token %q; expect 'type | net'%s", args[0], corefile.Meant(section, []string{"type", "net"}))
		}
		n := 1
		for n < len(args) && !isSection(args[n]) {
			n++
		}
		if n == 1 {
			return p, fmt.Errorf("no token specified in %q section", section)
		}
		*words = append(*words, args[1:n]...)
		args = args[n:]
	}
	err := p.setTypes(sections.types)
	if err == nil {
		err = p.setSources(sections.networks)
	}
	return p, err
}

func isSection(word string) bool {
	return strings.EqualFold(word, "type") || strings.EqualFold(word, "net")
}

// everything stands for all types, or all addresses.
const everything = "*"

func (p *policy) setTypes(words []string) error {
	for _, word := range words {
		if word == everything {
			continue
		}
		t, ok := dns.StringToType[word]
		if !ok {
			return fmt.Errorf("unexpected token %q; expect legal QTYPE%s", word, corefile.TypeChoice(word))
		}
		p.types = append(p.types, t)
	}
	if slices.Contains(words, everything) {
		p.types = nil
	}
	slices.Sort(p.types)
	return nil
}

func (p *policy) setSources(words []string) error {
	networks := make([]netip.Prefix, 0, len(words))
	for _, word := range words {
		if word == everything {
			continue
		}
		text := word
		if !strings.Contains(text, "/") {
			if strings.Contains(text, ":") {
				text += "/128"
			} else {
				text += "/32"
			}
		}
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("illegal CIDR notation %q: expect an address or a network such as 192.0.2.0/24 or 2001:db8::/32", text)
		}
		networks = append(networks, n)
	}
	if len(words) > 0 && !slices.Contains(words, everything) {
		p.sources = newSources(networks)
	}
	return nil
}

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, settings{keys: c.ServerBlockKeys})
	if err != nil {
		return err
	}
	a := ACL{counts: new(counts)}
	for _, s := range all {
		s.policies = joined(s.policies)
		for i := range s.zones {
			s.zones[i].id = a.counts.zones
			a.counts.zones++
		}
		a.Rules = append(a.Rules, s.rule)
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		a := a
		a.Next = next
		return a
	})
	return nil
}
