package recurse

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/localroot"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// settings is what the directive configures.
type settings struct {
	zones          []string
	hints          *store.Delegation
	roots          []localroot.Source
	stubs          map[string]*store.Delegation
	minimise       iterate.Minimise
	cut            iterate.Cut
	mixCase        bool
	encrypt        bool
	cookies        bool
	family         string
	sources        [2][]netip.Addr
	udpSize        int
	timeout        time.Duration
	budget         iterate.Budget
	perZone        int
	perServer      int
	recursions     int
	memory         int64
	servers        int
	keep           time.Duration
	minTTL         int
	maxTTL         int
	maxNegative    int
	special        bool
	notSpecial     []string
	deny           []netip.Prefix
	listeners      []netip.AddrPort // of the block, for plain DNS
	allow          []netip.Prefix
	private        []netip.Prefix
	notPrivate     []string
	screened       []string // zones whose names' answers a validator above screens; set at the start
	prefetch       bool
	subnets        []string // zones
	snoop          bool
	port           int
	aggressive     string
	aggressiveSaid bool
}

const (
	leastMemory  = 4 << 20
	mostMemory   = 32 << 20
	memoryShare  = 8 // half of what caches take by default, of what the process may use
	maxAddresses = 16
)

func defaults() settings {
	return settings{
		stubs: map[string]*store.Delegation{}, mixCase: true, cookies: true, family: "both", udpSize: 1232, timeout: 5 * time.Second,
		budget:  iterate.Budget{Queries: 128, Depth: 8, Aliases: 11, Hosts: 13, Octets: 512 << 10},
		perZone: 200, perServer: 200, memory: max(min(mostMemory, memory.Limit()/memoryShare), leastMemory), servers: 50000, keep: 15 * time.Minute,
		maxTTL: 86400, maxNegative: 3600, special: true, prefetch: true, port: 53, aggressive: "nsec",
	}
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[settings]{Syntax: "[ZONES...]", Max: -1, Set: setZones},
	Options: corefile.Table[settings]{
		corefile.Row("hints", "FILE", "a master file with the root's servers and their addresses", 1, 1, setHints),
		corefile.Row("local_root", "transfer ADDRESS...|url URL|file FILE", "where a copy of the root zone comes from, which is used in place of its servers (RFC 8806)", 2, 1+maxAddresses, setLocalRoot),
		corefile.Row("stub", "ZONE ADDRESS...", "ask these servers for the zone, whatever its parent says", 2, 1+maxAddresses, setStub),
		word("qname_minimisation", []string{"relaxed", "strict", "off"}, "how much of a name servers get to see (RFC 9156)", func(s *settings, w string) {
			s.minimise = map[string]iterate.Minimise{"relaxed": iterate.Relaxed, "strict": iterate.Strict, "off": iterate.Off}[w]
		}),
		onOff("case_randomization", "ask with letters of random case, which replies must repeat", func(s *settings) *bool { return &s.mixCase }),
		onOff("cookies", "show servers cookies (RFC 7873)", func(s *settings) *bool { return &s.cookies }),
		word("encryption", []string{"off", "probe"}, "ask servers over TLS that can be asked so (RFC 9539)", func(s *settings, w string) { s.encrypt = w == "probe" }),
		word("family", []string{"ipv4", "ipv6", "both", "prefer_ipv4", "prefer_ipv6"}, "the addresses by which servers are asked", func(s *settings, w string) { s.family = w }),
		corefile.Row("source_address", "IP...", "the addresses to ask from, one drawn for each query", 1, -1, setSources),
		number("udp_size", 512, 4096, "octets of a datagram that replies may have", func(s *settings) *int { return &s.udpSize }),
		corefile.Duration("timeout", 100*time.Millisecond, 30*time.Second, "how long a client waits at most", func(s *settings, d time.Duration) { s.timeout = d }),
		number("max_queries", 1, 1000, "queries to servers that one client's query may cost", func(s *settings) *int { return &s.budget.Queries }),
		number("max_depth", 1, 32, "how deep questions for the sake of others may be nested", func(s *settings) *int { return &s.budget.Depth }),
		number("max_aliases", 1, 32, "CNAME and DNAME records that are followed", func(s *settings) *int { return &s.budget.Aliases }),
		number("max_ns", 1, 64, "names of servers that are used of one delegation", func(s *settings) *int { return &s.budget.Hosts }),
		number("fetches_per_zone", 0, 1<<20, "queries under way for one zone; zones of one label have ten times as many, 0 is any number", func(s *settings) *int { return &s.perZone }),
		number("fetches_per_server", 0, 1<<20, "queries under way to one server; 0 is any number", func(s *settings) *int { return &s.perServer }),
		number("max_recursions", 1, 65536, "client queries that are resolved at one time; default is what limits waiting allows", func(s *settings) *int { return &s.recursions }),
		corefile.Row("memory", "SIZE", "octets that the stores may take", 1, 1, setMemory),
		corefile.Row("infra", "N [DURATION]", "server addresses of which something is known, and how long what they cannot do is remembered", 1, 2, setInfra),
		number("min_ttl", 0, 3600, "least TTL, in seconds", func(s *settings) *int { return &s.minTTL }),
		number("max_ttl", 0, 1<<31-1, "greatest TTL, in seconds", func(s *settings) *int { return &s.maxTTL }),
		number("max_negative_ttl", 0, 1<<31-1, "greatest TTL of denials, in seconds", func(s *settings) *int { return &s.maxNegative }),
		word("aggressive", []string{"nsec", "nsec3", "off"}, "which validated denials answer for other names, too (RFC 8198)", func(s *settings, w string) { s.aggressive, s.aggressiveSaid = w, true }),
		word("nxdomain_cut", []string{"secure", "always", "off"}, "which denials of a name deny those below (RFC 8020)", func(s *settings, w string) {
			s.cut = map[string]iterate.Cut{"secure": iterate.CutSecure, "always": iterate.CutAlways, "off": iterate.CutOff}[w]
		}),
		corefile.Row("special", "on|off [except ZONES...]", "answer for names that are to stay inside, such as those of private addresses", 1, -1, setSpecial),
		corefile.Row("deny_servers", "NETS...", "networks in which no server is asked, beside those that are not global", 1, -1, func(s *settings, l *corefile.Line) error {
			return nets(&s.deny, l.Args)
		}),
		corefile.Row("allow_servers", "NETS...", "networks in which servers are asked all the same", 1, -1, func(s *settings, l *corefile.Line) error {
			return nets(&s.allow, l.Args)
		}),
		corefile.Row("private_addresses", "NETS... [except ZONES...]", "addresses that are taken out of answers", 1, -1, setPrivate),
		onOff("prefetch", "fetch again behind the client what is asked in the last tenth of its TTL", func(s *settings) *bool { return &s.prefetch }),
		corefile.Flag("snoop", "refer clients that do not desire recursion to the servers of the closest zone that is kept", func(s *settings) { s.snoop = true }),
		corefile.Row("ecs", "ZONES...", "zones whose servers get to see in which network a client says it is (RFC 7871)", 1, -1, func(s *settings, l *corefile.Line) error {
			zones, err := names(l.Args)
			s.subnets = append(s.subnets, zones...)
			return err
		}),
		number("authority_port", 1, 65535, "the port of servers", func(s *settings) *int { return &s.port }),
	},
	Unknown: `unknown property "%s"`,
	Check: func(s *settings) error {
		if s.minTTL > s.maxTTL {
			return fmt.Errorf("min_ttl %d is more than max_ttl %d", s.minTTL, s.maxTTL)
		}
		return nil
	},
})

// number is an option with one whole number within bounds.
func number(name string, min, max int, help string, of func(*settings) *int) corefile.Option[settings] {
	return corefile.Int(name, min, max, help, func(s *settings, n int) { *of(s) = n })
}

// word is an option with one word of several.
func word(name string, words []string, help string, set func(*settings, string)) corefile.Option[settings] {
	return corefile.Enum(name, words, help, set)
}

// onOff is an option that is on or off.
func onOff(name, help string, of func(*settings) *bool) corefile.Option[settings] {
	return corefile.Enum(name, []string{"on", "off"}, help, func(s *settings, w string) { *of(s) = w == "on" })
}

func setZones(s *settings, l *corefile.Line) error {
	zones, err := plugin.ZonesFromArgs(l.Args, l.Controller().ServerBlockKeys)
	if err != nil {
		return err
	}
	for _, z := range zones {
		name, err := rrset.Name(z)
		if err != nil {
			return fmt.Errorf("invalid zone %q", z)
		}
		s.zones = append(s.zones, name)
	}
	return nil
}

func setMemory(s *settings, l *corefile.Line) (err error) {
	s.memory, err = corefile.ParseSize("memory", l.Args[0], 0, math.MaxInt64)
	if err == nil && s.memory < leastMemory {
		err = fmt.Errorf("memory must be at least 4M, not %s", l.Args[0])
	}
	return err
}

func setInfra(s *settings, l *corefile.Line) (err error) {
	if s.servers, err = corefile.ParseInt("infra", l.Args[0], 1000, 1<<24); err == nil && len(l.Args) > 1 {
		s.keep, err = corefile.ParseDuration("infra", l.Args[1], time.Minute, 24*time.Hour)
	}
	return err
}

func setSources(s *settings, l *corefile.Line) error {
	for _, a := range l.Args {
		ip, err := netip.ParseAddr(a)
		if err != nil {
			return fmt.Errorf("invalid source address %q", a)
		}
		i := 0
		if ip = ip.Unmap(); ip.Is6() {
			i = 1
		}
		s.sources[i] = append(s.sources[i], ip)
	}
	return nil
}

func setSpecial(s *settings, l *corefile.Line) (err error) {
	switch l.Args[0] {
	case "on", "off":
		s.special = l.Args[0] == "on"
	default:
		return fmt.Errorf("special expects 'on' or 'off', got %q", l.Args[0])
	}
	if len(l.Args) == 1 {
		return nil
	}
	if l.Args[1] != "except" || len(l.Args) == 2 {
		return l.CountErr()
	}
	s.notSpecial, err = names(l.Args[2:])
	return err
}

func setPrivate(s *settings, l *corefile.Line) (err error) {
	args := l.Args
	for i, a := range args {
		if a == "except" {
			if i == 0 || i == len(args)-1 {
				return l.CountErr()
			}
			if s.notPrivate, err = names(args[i+1:]); err != nil {
				return err
			}
			args = args[:i]
			break
		}
	}
	return nets(&s.private, args)
}

// names are zones in presentation form as names.
func names(zones []string) (all []string, err error) {
	for _, z := range zones {
		name, err := rrset.Name(z)
		if err != nil || z == "" { // which is not the root, but a variable of the environment that is not set, say
			return nil, fmt.Errorf("invalid zone %q", z)
		}
		all = append(all, name)
	}
	return all, nil
}

// nets appends networks, or single addresses.
func nets(to *[]netip.Prefix, texts []string) error {
	for _, t := range texts {
		p, err := corefile.ParseSource(t)
		if err != nil {
			return err
		}
		*to = append((*to)[:len(*to):len(*to)], p)
	}
	return nil
}
