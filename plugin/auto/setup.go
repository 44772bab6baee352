package auto

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/coredns/caddy"
)

func init() { plugin.Register("auto", setup) }

const (
	defaultReload   = time.Minute
	defaultTemplate = "${1}"
	maxPattern      = 10000 // octets of a regular expression
)

var defaultPattern = regexp.MustCompile(`db\.(.*)`)

// settings is one directive.
type settings struct {
	folder  *folder
	origins []string
	fall    fall.F
	falls   bool
	keys    []string // of the server block
	root    string   // the folder of relative names
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: "auto",
	Args: corefile.Args[settings]{Syntax: "[ZONES...]", Max: -1, Set: func(s *settings, l *corefile.Line) (err error) {
		s.folder = &folder{pattern: defaultPattern, template: defaultTemplate, every: defaultReload}
		s.origins, err = plugin.ZonesFromArgs(l.Args, s.keys)
		return err
	}},
	Options: corefile.Table[settings]{
		corefile.Row("directory", "DIR [REGEXP ORIGIN_TEMPLATE]", "where zone files are, how their names look, and what zones they hold", 1, 3, setDirectory),
		corefile.Row("reload", "DURATION", "look at the folder so often what has changed; 0 never does", 0, 1, setReload),
		corefile.Flag("reload_by_mtime", "read a file again whenever it was changed, also with the same serial", func(s *settings) { s.folder.byMtime = true }),
		corefile.Flag("nsec3", "take zones that are signed with NSEC3 records", func(s *settings) { s.folder.nsec3 = true }),
		corefile.Flag("zonemd", "refuse files that do not match their ZONEMD record", func(s *settings) { s.folder.zonemd = true }),
		corefile.Fallthrough(func(s *settings, zones []string) {
			s.fall.SetZonesFromArgs(zones)
			s.falls = true
		}),
		corefile.Ignored[settings]("upstream"),
	},
	Check: func(s *settings) error {
		if s.folder.path == "" {
			return errors.New("'directory' is required")
		}
		return nil
	},
})

func setDirectory(s *settings, l *corefile.Line) error {
	path := corefile.Below(s.root, l.Args[0])
	s.folder.path = path
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		alog.Warningf("Directory does not exist: %s", path)
	} else if err != nil {
		//lint:ignore ST1005 as CoreDNS 1.14.7 words it
		return fmt.Errorf("Unable to access root path '%s': %w", path, err)
	}
	if len(l.Args) == 1 {
		return nil
	}
	if len(l.Args[1]) > maxPattern {
		return fmt.Errorf("regexp too large: %d octets, at most %d are allowed", len(l.Args[1]), maxPattern)
	}
	pattern, err := regexp.Compile(l.Args[1])
	if err != nil {
		return err
	}
	if pattern.NumSubexp() == 0 {
		//lint:ignore ST1005 as CoreDNS 1.14.7 words it
		return errors.New("Need at least one sub expression")
	}
	if len(l.Args) == 2 {
		return l.CountErr()
	}
	s.folder.pattern, s.folder.template = pattern, strings.ReplaceAll(l.Args[2], "{", "${")
	return nil
}

func setReload(s *settings, l *corefile.Line) error {
	if len(l.Args) == 0 {
		return errors.New("reload duration value is expected")
	}
	d, err := time.ParseDuration(l.Args[0])
	if err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("invalid duration for reload: %s: must not be negative", l.Args[0])
	}
	s.folder.every = d
	return nil
}

func setup(c *caddy.Controller) error {
	cfg := dnsserver.GetConfig(c)
	all, err := directive.ParseEach(c, settings{keys: c.ServerBlockKeys, root: cfg.Root})
	if err != nil {
		return err
	}
	a := Auto{friends: new(friends)}
	var origins []string
	for _, s := range all {
		a.folders = append(a.folders, s.folder)
		origins = append(origins, s.origins...)
		if s.falls {
			a.Fall = s.fall
		}
	}
	slices.Sort(origins)
	a.Zones = newZones(slices.Compact(origins))

	c.OnStartup(func() error {
		a.friends.transfer, _ = cfg.Handler("transfer").(*transfer.Transfer)
		a.friends.metrics, _ = cfg.Handler("prometheus").(*metrics.Metrics)
		var w *watcher
		c.OnShutdown(func() error {
			if w != nil {
				w.stop()
			}
			for _, f := range a.folders {
				a.forget(f)
			}
			return nil
		})
		if err := a.Walk(); err != nil {
			return plugin.Error("auto", err)
		}
		w = a.watch()
		return nil
	})
	c.OnRestartFailed(func() error {
		for _, name := range a.Names() {
			a.friends.transfer.NotifyLater(name)
		}
		return nil
	})
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		a.Next = next
		return a
	})
	return nil
}
