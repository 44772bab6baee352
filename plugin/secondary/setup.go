package secondary

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/parse"
	pkgtls "github.com/coredns/coredns/plugin/pkg/tls"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func init() { plugin.Register("secondary", setup) }

// settings is one directive.
type settings struct {
	zones   []string
	source  *source
	catalog bool
	members []string // below which catalogs may have members
	all     bool     // they may have any
	fall    fall.F
	falls   bool
	keys    []string // of the server block
	root    string   // the folder of relative names
	limits  fetch.Limits

	serverName string // of primaries with TLS
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: "secondary",
	Args: corefile.Args[settings]{Syntax: "[ZONES...]", Max: -1, Set: func(s *settings, l *corefile.Line) (err error) {
		s.source = &source{limits: s.limits}
		s.zones, err = plugin.ZonesFromArgs(l.Args, s.keys)
		return err
	}},
	Options: corefile.Table[settings]{
		corefile.Row("transfer", "from ADDRESS [ADDRESS...]", "the primaries", 1, -1, setPrimaries),
		corefile.Row("catalog", "[MEMBER-ZONES...]", "the zones are catalogs, whose members are to be served, too", 0, -1, setCatalog),
		corefile.Row("tsig", "KEY [ALGORITHM]", "sign queries with a key of the tsig plugin, and have answers signed", 1, 2, setKey),
		corefile.Row("tls", "[CA | CERT KEY | CERT KEY CA]", "files for primaries with tls://", 0, 3, setTLS),
		corefile.String("tls_servername", "NAME", "the name that their certificates must be for", func(s *settings, v string) { s.serverName = v }),
		corefile.Row("storage", "DIR", "keep the zones in a folder", 1, 1, setStorage),
		corefile.Flag("forward_updates", "pass UPDATE messages on to the primaries", func(s *settings) { s.source.updates = true }),
		corefile.Flag("zonemd", "refuse zones that do not match their ZONEMD record", func(s *settings) { s.source.zonemd = true }),
		corefile.Int("max_records", 1, math.MaxInt32, "records that a transfer may have", func(s *settings, n int) { s.source.limits.Records = n }),
		corefile.Row("max_octets", "N", "octets that a transfer may have", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			s.source.limits.Octets, err = corefile.ParseSize("max_octets", l.Args[0], 512, math.MaxInt64)
			return err
		}),
		corefile.Duration("max_time", time.Second, 24*time.Hour, "how long a transfer may take", func(s *settings, d time.Duration) { s.source.limits.Total = d }),
		corefile.Fallthrough(func(s *settings, zones []string) {
			s.fall.SetZonesFromArgs(zones)
			s.falls = true
		}),
		corefile.Ignored[settings]("upstream"),
	},
	Check: func(s *settings) error {
		if len(s.source.primaries) == 0 {
			return errors.New("secondary zones require a transfer from property")
		}
		if s.source.updates && len(s.source.secure) > 0 {
			return errors.New("forward_updates goes to primaries without TLS only")
		}
		if s.source.tls == nil {
			s.source.tls = new(tls.Config)
		}
		s.source.tls.ServerName = s.serverName
		return nil
	},
})

func setPrimaries(s *settings, l *corefile.Line) error {
	if l.Args[0] != "from" {
		return fmt.Errorf("unknown property %s", l.Args[0])
	}
	if len(l.Args) == 1 {
		return l.CountErr()
	}
	for _, text := range l.Args[1:] {
		if text == "*" {
			return errors.New("can't use '*' in transfer from")
		}
		port, secure := transport.Port, strings.HasPrefix(text, transport.TLS+"://")
		if secure {
			text, port = strings.TrimPrefix(text, transport.TLS+"://"), transport.TLSPort
		}
		addr, err := parse.HostPort(text, port)
		if err == nil {
			err = parse.Endpoint(addr)
		}
		if err != nil {
			return err
		}
		if secure {
			if s.source.secure == nil {
				s.source.secure = map[string]bool{}
			}
			s.source.secure[addr] = true
		}
		s.source.primaries = append(s.source.primaries, addr)
	}
	return nil
}

func setCatalog(s *settings, l *corefile.Line) error {
	s.catalog = true
	s.all = s.all || len(l.Args) == 0
	for _, text := range l.Args {
		zones := plugin.Host(text).NormalizeExact()
		if len(zones) == 0 || strings.HasPrefix(text, ":") {
			return fmt.Errorf("invalid catalog member zone %q", text)
		}
		s.members = append(s.members, zones...)
	}
	return nil
}

func setKey(s *settings, l *corefile.Line) error {
	algorithm := ""
	if len(l.Args) > 1 {
		var ok bool
		if algorithm, ok = keyring.Algorithm(l.Args[1]); !ok {
			return fmt.Errorf("unknown algorithm %q: must be hmac-sha1, hmac-sha224, hmac-sha256, hmac-sha384 or hmac-sha512", l.Args[1])
		}
	}
	s.source.key = &fetch.Key{Name: plugin.Name(l.Args[0]).Normalize(), Algorithm: algorithm}
	return nil
}

func setTLS(s *settings, l *corefile.Line) (err error) {
	s.source.tls, err = pkgtls.NewTLSConfigFromArgs(corefile.AllBelow(s.root, l.Args)...)
	return err
}

func setStorage(s *settings, l *corefile.Line) error {
	s.source.storage = corefile.Below(s.root, l.Args[0])
	return nil
}

func setup(c *caddy.Controller) error { return setupWith(c, file.TransferLimits()) }

// setupWith is setup with limits of transfers for which the Corefile sets none.
func setupWith(c *caddy.Controller, limits fetch.Limits) error {
	cfg := dnsserver.GetConfig(c)
	all, err := directive.ParseEach(c, settings{keys: c.ServerBlockKeys, root: cfg.Root, limits: limits})
	if err != nil {
		return err
	}
	s := Secondary{roster: newRoster()}
	s.roster.block = c.ServerBlockKeys
	crew := crewOf(c)
	crew.rosters = append(crew.rosters, s.roster)
	s.roster.alone = crew.hasOne
	s.Zones = file.Zones{Z: map[string]*file.Zone{}}
	for _, line := range all {
		if line.falls {
			s.Fall = line.fall
		}
		if err := s.add(&line); err != nil {
			return plugin.Error("secondary", err)
		}
	}
	s.roster.publish()
	if slices.ContainsFunc(all, func(line settings) bool { return line.source.updates }) {
		cfg.AllowOpcode(dns.OpcodeUpdate)
	}
	dnsserver.Check(c, func() error {
		for _, line := range all {
			if err := line.source.prepare(cfg.TsigKey); err != nil {
				return plugin.Error("secondary", err)
			}
		}
		return nil
	})
	c.OnStartup(func() error {
		x, _ := cfg.Handler("transfer").(*transfer.Transfer)
		s.roster.rooms.listens = dnsserver.Listens(c)
		s.roster.start(x)
		crew.begins()
		c.OnShutdown(func() error {
			s.roster.withdraw(false)
			s.roster.stop()
			return nil
		})
		return nil
	})
	c.OnRestart(func() error {
		s.roster.offer()
		return nil
	})
	c.OnRestartFailed(func() error {
		s.roster.withdraw(true)
		return nil
	})
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		s.Next = next
		return s
	})
	return nil
}

// add adds the zones of a directive.
func (s *Secondary) add(line *settings) error {
	for _, name := range line.zones {
		z := newReplica(name, line.source, s.roster.rooms)
		if len(z.origin()) == 0 {
			return fmt.Errorf("zone %s is no name", name)
		}
		z.zone.TransferFrom = line.source.primaries
		s.roster.statics[z.name()] = true
		s.roster.add(z)
		if line.catalog {
			c := &consumer{source: line.source}
			if !line.all {
				c.members = line.members
			}
			s.roster.consume(z, c)
		}
		if s.Zones.Z[z.name()] == nil {
			s.Zones.Names = append(s.Zones.Names, z.name())
		}
		s.Zones.Z[z.name()] = z.zone
	}
	return nil
}
