package autopath

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

var log = clog.NewWithPlugin(pluginName)

// settings is one directive.
type settings struct {
	zones  []string
	search []string
	from   string // the plugin that knows the list, "" if search is the list
	place  string // where that stands, FILE:LINE
	keys   []string
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[ZONES...] RESOLV-CONF|@PLUGIN", Max: -1, Set: func(s *settings, l *corefile.Line) (err error) {
		if len(l.Args) == 0 {
			return errors.New("no resolv-conf specified")
		}
		last := l.Args[len(l.Args)-1]
		if s.zones, err = plugin.ZonesFromArgs(l.Args[:len(l.Args)-1], s.keys); err != nil {
			return err
		}
		var ok bool
		if s.from, ok = strings.CutPrefix(last, "@"); ok {
			s.place = fmt.Sprintf("%s:%d", l.Controller().File(), l.Controller().Line())
			return nil
		}
		s.from = ""
		s.search, err = readSearch(last)
		return err
	}},
})

// readSearch reads the search list of a resolv.conf, and adds the name as it is.
func readSearch(file string) ([]string, error) {
	conf, err := dns.ClientConfigFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to parse %q: %w", file, err)
	}
	plugin.Zones(conf.Search).Normalize()
	return append(conf.Search, ""), nil
}

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, settings{keys: c.ServerBlockKeys})
	if err != nil {
		return err
	}
	s := all[len(all)-1]
	l, err := s.lists()
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	cfg := dnsserver.GetConfig(c)
	if s.from != "" {
		dnsserver.Check(c, func() error { return l.ask(cfg.Handler(s.from), s.from, s.place) })
	}
	a := &AutoPath{Zones: s.zones, lists: l}
	c.OnStartup(func() error { a.validates = cfg.Handler("validator") != nil; return nil })
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		a.Next = next
		return a
	})
	return nil
}

func (s *settings) lists() (*lists, error) {
	l := &lists{search: s.search}
	for _, z := range s.zones {
		name, err := wire.LowerName(z)
		if err != nil {
			return nil, fmt.Errorf("zone %q: %w", z, err)
		}
		l.zones = append(l.zones, name)
	}
	if len(s.search) > 1 && s.search[0] != "." { // all names are below the root: there is nothing to take off
		first, err := wire.LowerName(s.search[0])
		if err != nil {
			return nil, fmt.Errorf("search list: %q: %w", s.search[0], err)
		}
		l.first = first
	}
	return l, nil
}

// ask makes h, the plugin name of the same block, the one that knows search lists. Without it there are none; the
// directive stands at place.
func (l *lists) ask(h plugin.Handler, name, place string) error {
	if h == nil {
		log.Warningf("%s: %s is not in this server block: there are no search lists, and no names are completed", place, name)
		return nil
	}
	p, ok := h.(AutoPather)
	if !ok {
		return plugin.Error(pluginName, fmt.Errorf("%s does not implement the AutoPather interface", name))
	}
	l.of = p.AutoPath
	l.prompt = plugin.HasWire(h) // who has a wire lane of its own knows that nothing may wait there
	return nil
}
