package file

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/coredns/caddy"
)

func init() { plugin.Register("file", setup) }

// line is one file directive.
type line struct {
	file     string
	zones    []string
	reload   time.Duration
	byMtime  bool
	nsec3    bool
	zonemd   bool
	fall     fall.F
	falls    bool
	keys, in []string // the server block's keys; the folder of relative names
	place    string   // in the Corefile
}

const defaultReload = time.Minute

var directive = corefile.Define(&corefile.Directive[line]{
	Name: "file",
	Args: corefile.Args[line]{Syntax: "DBFILE [ZONES...]", Min: 1, Max: -1, Set: func(l *line, c *corefile.Line) (err error) {
		l.file, l.place = corefile.Below(l.in[0], c.Args[0]), c.Place()
		l.zones, err = plugin.ZonesFromArgs(c.Args[1:], l.keys)
		return err
	}},
	Options: corefile.Table[line]{
		corefile.Row("reload", "DURATION", "look at the file so often whether it was changed; 0 never does", 0, 1, setReload),
		corefile.Row("reload_by_mtime", "", "read the file again whenever it was changed, also with the same serial", 0, -1, func(l *line, _ *corefile.Line) error {
			l.byMtime = true
			return nil
		}),
		corefile.Row("nsec3", "", "take zones that are signed with NSEC3 records", 0, 0, func(l *line, _ *corefile.Line) error {
			l.nsec3 = true
			return nil
		}),
		corefile.Row("zonemd", "", "refuse a file that does not match its ZONEMD record", 0, 0, func(l *line, _ *corefile.Line) error {
			l.zonemd = true
			return nil
		}),
		corefile.Fallthrough(func(l *line, zones []string) {
			l.fall.SetZonesFromArgs(zones)
			l.falls = true
		}),
		corefile.Ignored[line]("upstream"),
	},
})

func setReload(l *line, c *corefile.Line) error {
	if len(c.Args) == 0 {
		return errors.New("reload duration value is expected")
	}
	d, err := time.ParseDuration(c.Args[0])
	if err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("invalid duration for reload: %s: must not be negative", c.Args[0])
	}
	l.reload = d
	return nil
}

func setup(c *caddy.Controller) error {
	cfg := dnsserver.GetConfig(c)
	lines, err := directive.ParseEach(c, line{reload: defaultReload, keys: c.ServerBlockKeys, in: []string{cfg.Root}})
	if err != nil {
		return err
	}
	var f File
	if err := f.open(lines); err != nil {
		return plugin.Error("file", err)
	}
	f.index = NewIndex(f.Zones.Z)
	f.leading = newLeading(f.Zones.Z)
	c.OnStartup(func() error {
		f.Xfer, _ = cfg.Handler("transfer").(*transfer.Transfer)
		for _, z := range f.Zones.Z {
			z.Announce(f.Xfer)
		}
		w := watch(slices.Collect(maps.Values(f.Zones.Z)))
		c.OnShutdown(func() error {
			w.stop()
			return nil
		})
		return nil
	})
	c.OnRestartFailed(func() error {
		for _, name := range f.Zones.Names {
			f.Xfer.NotifyLater(name)
		}
		return nil
	})
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		f.Next = next
		return f
	})
	return nil
}

// open reads the files of all lines. A file that cannot be opened is no error if it is looked at again later.
func (f *File) open(lines []line) error {
	f.Zones.Z = map[string]*Zone{}
	for _, l := range lines {
		if l.falls {
			f.Fall = l.fall
		}
		corefile.SetPlace(l.place)
		for _, name := range l.zones {
			z := NewZone(name, l.file)
			if z.name == nil {
				return fmt.Errorf("zone %s: %w", name, wire.ErrName)
			}
			z.ReloadInterval, z.ReloadByMtime, z.NSEC3, z.ZONEMD = l.reload, l.byMtime, l.nsec3, l.zonemd
			err := z.Load()
			switch {
			case err == nil:
			case l.reload > 0 && unopened(err):
				flog.Warningf("Failed to open %q: trying again in %s", err, l.reload)
			default:
				return err
			}
			if f.Zones.Z[z.origin] == nil {
				f.Zones.Names = append(f.Zones.Names, z.origin)
			}
			f.Zones.Z[z.origin] = z
		}
	}
	return nil
}

// unopened reports whether the zone's file itself could not be opened; what goes wrong with its content, or with a file that it
// includes, is another matter.
func unopened(err error) bool {
	p, ok := err.(*fs.PathError) //nolint:errorlint // a wrapped one is not of the zone's file
	return ok && p.Op == "open"
}
