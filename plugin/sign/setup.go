package sign

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

const defaultDirectory = "/var/lib/coredns"

// settings is what a directive says.
type settings struct {
	dbfile    string
	zones     []string
	keys      zonekeys.Source
	directory string
	nsec3     bool
	zonemd    bool
	root      string // the folder of relative names
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "DBFILE [ZONES...]", Min: 1, Max: -1, Set: setFile},
	Options: corefile.Table[settings]{
		corefile.Row("key", "file|directory KEY...", "keys to sign with, from files, or all of the zone in a folder", 2, -1, addPairs),
		corefile.Row("directory", "DIR", "where the signed zone is written", 0, -1, func(s *settings, l *corefile.Line) error {
			if len(l.Args) != 1 {
				return errors.New(`can only be one argument after "directory"`)
			}
			s.directory = s.rooted(l.Arg(0))
			return nil
		}),
		corefile.Flag("nsec3", "prove by NSEC3 records what does not exist", func(s *settings) { s.nsec3 = true }),
		corefile.Flag("zonemd", "add a digest of the zone", func(s *settings) { s.zonemd = true }),
	},
	Check: func(s *settings) error {
		if s.keys.Empty() {
			return fmt.Errorf("no keys to sign %s with", strings.Join(s.zones, " "))
		}
		return nil
	},
})

func setFile(s *settings, l *corefile.Line) (err error) {
	if strings.ContainsRune(l.Arg(0), utf8.RuneError) {
		return fmt.Errorf("dbfile %q contains invalid characters", l.Arg(0))
	}
	s.dbfile = s.rooted(l.Arg(0))
	s.zones, err = plugin.ZonesFromArgs(l.Args[1:], l.Controller().ServerBlockKeys)
	return err
}

func addPairs(s *settings, l *corefile.Line) error {
	for _, name := range l.Args[1:] {
		if err := s.keys.Add(l.Arg(0), s.rooted(name)); err != nil {
			return err
		}
	}
	return nil
}

// rooted is a file's name, below the folder of relative names if it is one.
func (s *settings) rooted(name string) string {
	return corefile.Below(s.root, name)
}

// signers is one Signer for each zone.
func (s *settings) signers() (all []*Signer, err error) {
	for _, origin := range s.zones {
		keys, err := s.keys.For(origin, log.Warningf)
		if err != nil {
			return nil, err
		}
		signer := newSigner(origin, s.dbfile, s.directory, keys)
		signer.nsec3, signer.zonemd = s.nsec3, s.zonemd
		all = append(all, signer)
	}
	return all, nil
}

func setup(c *caddy.Controller) error {
	s, err := parse(c)
	if err != nil {
		return err
	}
	c.OnStartup(func() error {
		s.listens = dnsserver.Listens(c)
		c.OnShutdown(s.OnShutdown)
		return s.OnStartup()
	})
	return nil
}

func parse(c *caddy.Controller) (*Sign, error) {
	root := dnsserver.GetConfig(c).Root
	lines, err := directive.ParseEach(c, settings{directory: defaultDirectory, root: root})
	if err != nil {
		return nil, err
	}
	s := new(Sign)
	for i := range lines {
		signers, err := lines[i].signers()
		if err != nil {
			return nil, plugin.Error(pluginName, err)
		}
		for _, signer := range signers {
			if isFirst(c, signer) {
				s.signers = append(s.signers, signer)
			}
		}
	}
	return s, nil
}

// written is where the Signers of a configuration that write a file are kept.
type written struct{ file string }

// isFirst reports whether no other Signer of the configuration does the same: directives are set up once for each key of
// their server block, and zones may be named twice. It warns of one that writes the same file with something else.
func isFirst(c *caddy.Controller, s *Signer) bool {
	file := written{s.signedFile()}
	others, _ := c.Get(file).([]*Signer)
	if slices.ContainsFunc(others, s.does) {
		return false
	}
	if len(others) > 0 {
		log.Warningf("Signed file %q is written by two directives, from %q and from %q, or with other keys or options: the last one counts", file.file, others[0].dbfile, s.dbfile)
	}
	c.Set(file, append(others, s))
	return true
}
