package dynupdate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"

	"github.com/miekg/dns"
)

// settings is one directive.
type settings struct {
	zone        string
	origin      []byte
	keys        []string // of the server block
	root        string   // the folder of relative names
	file        string
	database    string
	policy      policy
	maxRecords  int
	maxBytes    int
	maxUpdate   int // records of a request
	serial      serialPolicy
	journal     journalLimits
	ttlMin      uint32
	ttlMax      uint32
	notifyDelay time.Duration
	quiet       bool     // changes and refusals are not logged
	to          []string // where updates are passed on to, host:port
	passKey     passKey
	keySource   zonekeys.Source
	keyPairs    []zonekeys.Pair // that the zone is signed with
	nsec3       bool            // denials are NSEC3 records
	reverseOf   [][]byte        // zones whose addresses make PTR records here
}

const (
	defaultRecords = 10_000
	defaultBytes   = 8 << 20
	defaultUpdate  = 1024
	defaultJournal = 16 // versions
	defaultDelay   = 100 * time.Millisecond

	mostRecords = 50_000_000
	mostBytes   = min(4<<30, math.MaxInt)
)

func defaults() settings {
	return settings{
		maxRecords: defaultRecords, maxBytes: defaultBytes, maxUpdate: defaultUpdate, journal: journalLimits{count: defaultJournal},
		ttlMax: 1<<31 - 1, notifyDelay: defaultDelay,
	}
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[ZONE]", Max: -1, Set: setZone},
	Options: corefile.Table[settings]{
		corefile.Row("file", "DBFILE", "the master file that a new zone begins with", 1, 1, func(s *settings, l *corefile.Line) error {
			if s.file != "" {
				return errors.New("file specified more than once")
			}
			s.file = corefile.Below(s.root, l.Args[0])
			return nil
		}),
		corefile.Row("database", "PATH", "where changes are kept; without it they are lost with the process", 1, 1, func(s *settings, l *corefile.Line) error {
			if s.database != "" {
				return errors.New("database specified more than once")
			}
			if l.Args[0] == "" { // of a variable of the environment that is not set, say; all changes would be lost
				return errors.New("database needs a PATH")
			}
			s.database = corefile.Below(s.root, l.Args[0])
			return nil
		}),
		ruleRow("allow", "a key may change a name", false, false),
		ruleRow("allow_below", "a key may change a name and all names below it", false, true),
		ruleRow("deny", "a key may not change a name, whatever later lines say", true, false),
		ruleRow("deny_below", "a key may not change a name and all names below it, whatever later lines say", true, true),
		corefile.Row("self", "KEY-PATTERN TYPE [TYPE...]", "keys may change the name that is their own", 2, -1, setSelf),
		corefile.Row("net", "NETS...", "addresses that updates may come from", 1, -1, setNets),
		size("max_records", "COUNT", "records of the zone", mostRecords, func(s *settings) *int { return &s.maxRecords }),
		corefile.Row("max_bytes", "BYTES", "octets of the zone's records in wire form", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			s.maxBytes, err = octets(l.Name(), l.Args[0])
			return err
		}).Once(),
		size("max_update_records", "COUNT", "prerequisites and updates of a request", mostRecords, func(s *settings) *int { return &s.maxUpdate }),
		corefile.Enum("serial", []string{"increment", "unixtime", "date"}, "how serials are made", func(s *settings, word string) {
			s.serial = map[string]serialPolicy{"increment": serialIncrement, "unixtime": serialUnixTime, "date": serialDate}[word]
		}),
		corefile.Row("journal", "COUNT [SIZE]", "versions, and octets, that are kept for incremental transfers", 1, 2, setJournal),
		corefile.Row("ttl", "MIN MAX", "bounds of TTLs", 2, 2, setTTL),
		corefile.Row("forward", "ADDRESS... [tsig KEY [ALGORITHM]]", "pass updates on, in place of a zone of its own", 1, -1, setForward).Once(),
		corefile.Row("sign", "key file|directory KEY... [nsec3]", "keys that the zone is signed with", 3, -1, setKeys),
		corefile.Duration("notify_delay", 0, time.Minute, "how long changes are gathered before secondaries are notified", func(s *settings, d time.Duration) { s.notifyDelay = d }),
		corefile.Row("reverse_of", "ZONE", "a zone whose addresses make PTR records here", 1, 1, setReverse),
		corefile.Enum("log", []string{"on", "off"}, "log changes and refusals", func(s *settings, word string) { s.quiet = word == "off" }),
	},
	Unknown: `unknown property "%s"`,
	Check:   checkSettings,
})

func setZone(s *settings, l *corefile.Line) error {
	name := ""
	switch len(l.Args) {
	case 0:
		var zones []string
		for _, z := range plugin.OriginsFromArgsOrServerBlock(nil, s.keys) {
			if !slices.Contains(zones, z) {
				zones = append(zones, z)
			}
		}
		if len(zones) != 1 {
			return errors.New("zone is required when the server block does not define exactly one zone")
		}
		name = zones[0]
	case 1:
		names := plugin.Host(l.Args[0]).NormalizeExact()
		if len(names) != 1 {
			return fmt.Errorf("invalid zone %q", l.Args[0])
		}
		name = names[0]
	default:
		return errors.New("exactly one zone is allowed")
	}
	var err error
	if s.origin, err = wire.LowerName(name); err != nil {
		return fmt.Errorf("invalid zone %q", name)
	}
	s.zone = wire.Text(s.origin)
	return nil
}

// size is an option with a positive number.
func size(name, syntax, help string, most int, to func(*settings) *int) corefile.Option[settings] {
	return corefile.Row(name, syntax, help, 1, 1, func(s *settings, l *corefile.Line) (err error) {
		*to(s), err = corefile.ParseInt(name, l.Args[0], 1, most)
		return err
	}).Once()
}

// ruleRow is an option that is a rule.
func ruleRow(name, help string, deny, below bool) corefile.Option[settings] {
	return corefile.Row(name, "KEY NAME TYPE [TYPE...]", help, 0, -1, func(s *settings, l *corefile.Line) error {
		if len(l.Args) < 3 {
			return fmt.Errorf("%s requires KEY NAME and at least one RR type", name)
		}
		r, err := s.rule(name, l.Args, below)
		r.deny = deny
		s.policy.rules = append(s.policy.rules, r)
		return err
	})
}

// rule is the rule of a line.
func (s *settings) rule(option string, args []string, below bool) (r rule, err error) {
	r.below = below
	if r.key, err = keyName(args[0]); err != nil {
		return r, err
	}
	switch name := args[1]; name {
	case "@":
		r.name = s.origin
	case "*":
		if below {
			return r, fmt.Errorf("%s: %q is every name: use %s", option, name, strings.TrimSuffix(option, "_below"))
		}
	default:
		if r.name, err = wire.LowerName(dns.Fqdn(name)); err != nil {
			return r, fmt.Errorf("invalid %s name %q", option, name)
		}
		if !wire.Below(r.name, s.origin) {
			return r, fmt.Errorf("%s name %q is outside zone %q", option, name, s.zone)
		}
	}
	r.types, err = typesOf(option, args[2:])
	return r, err
}

// keyName is the name of a TSIG key, fully qualified and in lower case.
func keyName(text string) (string, error) {
	name, err := wire.LowerName(dns.Fqdn(text))
	if err != nil || text == "" || text == "*" || text == "@" || len(name) == 1 {
		return "", fmt.Errorf("invalid TSIG key %q", text)
	}
	return wire.Text(name), nil
}

// typesOf is the types that words of an option stand for.
func typesOf(option string, words []string) (t typeSet, err error) {
	for _, word := range words {
		typ, ok := dnsutil.TypeOf(word)
		switch {
		case word == "*" && len(words) > 1:
			return t, errors.New("wildcard RR type must be the only type")
		case word == "*":
			return typeSet{all: true}, nil
		case !ok, typ != dns.TypeANY && wire.IsMeta(typ), slices.Contains(refusedTypes, typ) && !mayBeNamed(typ):
			return t, fmt.Errorf("invalid RR type %q in %s rule", word, strings.TrimSuffix(option, "_below"))
		}
		t.types = append(t.types, typ)
	}
	return t, nil
}

// mayBeNamed reports whether a type that is otherwise not taken is if a rule names it: what a parent and a child tell
// each other.
func mayBeNamed(typ uint16) bool {
	return typ == dns.TypeDS || typ == dns.TypeCDS || typ == dns.TypeCDNSKEY
}

func setSelf(s *settings, l *corefile.Line) error {
	name, err := keyName(l.Args[0])
	if err != nil {
		return err
	}
	types, err := typesOf("self", l.Args[1:])
	s.policy.rules = append(s.policy.rules, rule{key: name, self: true, types: types})
	return err
}

func setNets(s *settings, l *corefile.Line) error {
	for _, text := range l.Args {
		n, err := corefile.ParseSource(text)
		if err != nil {
			return fmt.Errorf("net %q: must be an address or a network in CIDR notation: %w", text, err)
		}
		s.policy.nets = append(s.policy.nets, n.Masked())
	}
	return nil
}

func setJournal(s *settings, l *corefile.Line) (err error) {
	s.journal = journalLimits{}
	if s.journal.count, err = corefile.ParseInt("journal", l.Args[0], 0, 1<<20); err != nil || len(l.Args) == 1 {
		return err
	}
	s.journal.size, err = octets("journal", l.Args[1])
	return err
}

// octets reads how many octets something may have.
func octets(what, text string) (int, error) {
	n, err := corefile.ParseSize(what, text, 1, int64(mostBytes))
	return int(n), err
}

func setTTL(s *settings, l *corefile.Line) error {
	least, err := corefile.ParseInt("ttl", l.Args[0], 0, 1<<31-1)
	if err != nil {
		return err
	}
	most, err := corefile.ParseInt("ttl", l.Args[1], least, 1<<31-1)
	s.ttlMin, s.ttlMax = uint32(least), uint32(most)
	return err
}

// setForward reads "forward ADDRESS... [tsig KEY [ALGORITHM]]".
func setForward(s *settings, l *corefile.Line) error {
	addrs := l.Args
	if i := slices.Index(addrs, "tsig"); i >= 0 {
		key := addrs[i+1:]
		if addrs = addrs[:i]; len(key) == 0 || len(key) > 2 {
			return fmt.Errorf("forward: tsig takes KEY [ALGORITHM], got %q", strings.Join(key, " "))
		}
		var err error
		if s.passKey.name, err = keyName(key[0]); err != nil {
			return fmt.Errorf("forward: %w", err)
		}
		if len(key) > 1 {
			var ok bool
			if s.passKey.algorithm, ok = keyring.Algorithm(key[1]); !ok {
				return fmt.Errorf("forward: unknown algorithm %q: must be hmac-sha1, hmac-sha224, hmac-sha256, hmac-sha384 or hmac-sha512", key[1])
			}
		}
	}
	for _, text := range addrs {
		addr, err := parse.HostPort(text, transport.Port)
		if err == nil {
			err = parse.Endpoint(addr)
		}
		if err != nil {
			return fmt.Errorf("forward: %w", err)
		}
		s.to = append(s.to, addr)
	}
	if len(s.to) == 0 {
		return errors.New("forward: an address is missing")
	}
	return nil
}

// setReverse reads "reverse_of ZONE".
func setReverse(s *settings, l *corefile.Line) error {
	names := plugin.Host(l.Args[0]).NormalizeExact()
	if len(names) != 1 {
		return fmt.Errorf("reverse_of: invalid zone %q", l.Args[0])
	}
	name, err := wire.LowerName(names[0])
	switch {
	case err != nil:
		return fmt.Errorf("reverse_of: invalid zone %q", l.Args[0])
	case wire.InReverse(name):
		return fmt.Errorf("reverse_of: %q is a zone of reverse names: must be one that has the addresses", l.Args[0])
	case slices.ContainsFunc(s.reverseOf, func(o []byte) bool { return string(o) == string(name) }):
		return fmt.Errorf("reverse_of: zone %q stands twice", l.Args[0])
	}
	s.reverseOf = append(s.reverseOf, name)
	return nil
}

// passes reports whether updates are passed on.
func (s *settings) passes() bool { return len(s.to) > 0 }

// setKeys reads "sign key file|directory KEY... [nsec3]".
func setKeys(s *settings, l *corefile.Line) error {
	if l.Args[0] != "key" {
		return fmt.Errorf("sign: unknown property %q: must be key", l.Args[0])
	}
	names := l.Args[2:]
	if last := len(names) - 1; names[last] == "nsec3" {
		s.nsec3, names = true, names[:last]
	}
	if len(names) == 0 {
		return errors.New("sign: a key is missing")
	}
	for _, name := range names {
		if err := s.keySource.Add(l.Args[1], corefile.Below(s.root, name)); err != nil {
			return fmt.Errorf("sign: %w", err)
		}
	}
	return nil
}

// signs reports whether the zone is signed.
func (s *settings) signs() bool { return !s.keySource.Empty() }

func checkSettings(s *settings) error {
	some := slices.ContainsFunc(s.policy.rules, func(r rule) bool { return !r.deny })
	switch {
	case s.passes() && (s.file != "" || s.database != "" || s.signs() || len(s.reverseOf) > 0):
		return errors.New("forward stands in place of file, database, sign and reverse_of: the zone is another server's")
	case len(s.reverseOf) > 0 && !wire.InReverse(s.origin):
		return fmt.Errorf("reverse_of: zone %q has no reverse names: must be in-addr.arpa or ip6.arpa, or below", s.zone)
	case s.passes() && s.passKey.name == "" && (some || len(s.policy.rules) > 0):
		return errors.New("forward without tsig passes all updates on as they are: rules need a key that they are signed with anew")
	case s.passes() && s.passKey.name == "":
		return nil
	case s.file == "" && !s.passes():
		return errors.New("file is required")
	case !some && len(s.reverseOf) == 0:
		return errors.New("at least one allow rule is required")
	case s.signs() && (s.policy.admits(dns.TypeCDS, "", nil) || s.policy.admits(dns.TypeCDNSKEY, "", nil)):
		return errors.New("sign makes the CDS and CDNSKEY records: no allow rule may name them")
	}
	var err error
	if s.keyPairs, err = s.keySource.For(s.zone, logger.Warningf); err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return nil
}
