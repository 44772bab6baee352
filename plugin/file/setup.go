package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
)

func init() { plugin.Register("file", setup) }

// line is one file directive.
type line struct {
	file     string
	zones    []string
	reload   reloadSettings
	fall     fall.F
	falls    bool
	keys, in []string // the server block's keys; the folder of relative names
}

const defaultReload = time.Minute

var directive = corefile.Define(corefile.Directive[line]{
	Name: "file",
	Args: corefile.Args[line]{Syntax: "DBFILE [ZONES...]", Min: 1, Max: -1, Set: func(l *line, c *corefile.Line) error {
		l.file = c.Args[0]
		if !filepath.IsAbs(l.file) && l.in[0] != "" {
			l.file = filepath.Join(l.in[0], l.file)
		}
		for _, z := range c.Args[1:] {
			if plugin.Host(z).NormalizeExact() == nil {
				return fmt.Errorf("invalid zone %q", z)
			}
		}
		l.zones = plugin.OriginsFromArgsOrServerBlock(c.Args[1:], l.keys)
		return nil
	}},
	Options: corefile.Table[line]{
		corefile.Row("reload", "DURATION", "look at the file so often whether it was changed; 0 never does", 0, 1, setReload),
		corefile.Row("reload_by_mtime", "", "read the file again whenever it was changed, also with the same serial", 0, -1, func(l *line, _ *corefile.Line) error {
			l.reload.byMtime = true
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
	l.reload.every = d
	return nil
}

func setup(c *caddy.Controller) error {
	cfg := dnsserver.GetConfig(c)
	lines, err := directive.ParseEach(c, line{reload: reloadSettings{every: defaultReload}, keys: c.ServerBlockKeys, in: []string{cfg.Root}})
	if err != nil {
		return err
	}
	f := File{index: new(index)}
	if err := f.open(lines); err != nil {
		return plugin.Error("file", err)
	}
	c.OnStartup(func() error {
		for _, z := range f.Zones.Z {
			z.start()
		}
		return nil
	})
	c.OnShutdown(func() error {
		for _, z := range f.Zones.Z {
			z.stopReload()
		}
		return nil
	})
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		f.Next = next
		return f
	})
	return nil
}

// open reads the files of all lines. A file that is not there is no error if it is looked at again later.
func (f *File) open(lines []line) error {
	f.Zones.Z = map[string]*Zone{}
	for _, l := range lines {
		if l.falls {
			f.Fall = l.fall
		}
		for _, name := range l.zones {
			origin, err := wire.LowerName(name)
			if err != nil {
				return fmt.Errorf("zone %s: %w", name, err)
			}
			z := &Zone{origin: origin, file: l.file, reload: l.reload}
			live, err := z.load(-1)
			switch {
			case err == nil:
				z.live.Store(live)
			case errors.Is(err, fs.ErrNotExist) && l.reload.every > 0 && !parsing(err):
				flog.Warningf("Failed to open %q: trying again in %s", err, l.reload.every)
			default:
				return err
			}
			if f.Zones.Z[name] == nil {
				f.Zones.Names = append(f.Zones.Names, name)
			}
			f.Zones.Z[name] = z
		}
	}
	return nil
}

// parsing reports whether a file was there but could not be understood, for instance as
// one that it includes is not there.
func parsing(err error) bool {
	var p *fs.PathError
	return errors.As(err, &p) && err != error(p)
}
