package hosts

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register("hosts", setup) }

const (
	defaultFile   = "/etc/hosts"
	defaultReload = 5 * time.Second
)

// settings is what the Corefile says.
type settings struct {
	h     *Hosts
	root  string
	keys  []string
	falls bool // fallthrough was read: no inline lines from here on
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: "hosts",
	Once: true,
	Args: corefile.Args[settings]{Syntax: "[FILE [ZONES...]]", Max: -1, Set: func(s *settings, l *corefile.Line) (err error) {
		if len(l.Args) > 0 {
			s.h.path = corefile.Below(s.root, l.Args[0])
		}
		if s.h.Origins, err = plugin.ZonesFromArgs(l.Args[min(1, len(l.Args)):], s.keys); err != nil {
			return err
		}
		return s.h.checkFile()
	}},
	UnlistedSyntax: "[INLINE]",
	Unlisted: func(s *settings, l *corefile.Line) (bool, error) {
		if _, ok := parseAddr(l.Name()); !ok || s.falls {
			if name := l.Name(); !s.falls && name != "" && name[0] >= '0' && name[0] <= '9' {
				return true, l.Errf("unknown property '%s': it is no IP address, and no option", name)
			}
			return false, nil
		}
		s.h.inline = append(s.h.inline, []byte(strings.Join(append([]string{l.Name()}, l.Args...), " ")))
		return true, nil
	},
	Options: corefile.Table[settings]{
		corefile.Row("ttl", "SECONDS", "TTL of all records, 1 to 65535", 0, -1, setTTL),
		corefile.Row("no_reverse", "", "make no PTR records", 0, -1, func(s *settings, _ *corefile.Line) error {
			s.h.noPTR = true
			return nil
		}),
		corefile.Row("reload", "DURATION", "look at the file so often whether it was changed; 0 never does", 0, -1, setReload),
		corefile.Fallthrough(func(s *settings, zones []string) {
			s.h.Fall.SetZonesFromArgs(zones)
			s.falls = true
		}),
		corefile.Flag("fallthrough_unsupported", "pass queries for other types than A, AAAA and PTR on, too", func(s *settings) { s.h.fallUnsupported = true }),
	},
	Check: func(s *settings) error {
		if s.h.fallUnsupported && !s.falls {
			return errors.New("fallthrough_unsupported requires fallthrough")
		}
		return nil
	},
})

func setTTL(s *settings, l *corefile.Line) error {
	if len(l.Args) == 0 {
		return errors.New("ttl needs a time in second")
	}
	n, err := strconv.Atoi(l.Args[0])
	if err != nil {
		return fmt.Errorf("ttl needs a number of second: %s", l.Args[0])
	}
	if n <= 0 || n > 65535 {
		return fmt.Errorf("ttl provided is invalid: %d: must be between 1 and 65535", n)
	}
	s.h.ttl = uint32(n)
	return nil
}

func setReload(s *settings, l *corefile.Line) error {
	if len(l.Args) != 1 {
		return errors.New("reload needs a duration (zero seconds to disable)")
	}
	d, err := time.ParseDuration(l.Args[0])
	if err != nil {
		return fmt.Errorf("invalid duration for reload '%s'", l.Args[0])
	}
	if d < 0 {
		return fmt.Errorf("invalid negative duration for reload '%s'", l.Args[0])
	}
	s.h.reload = d
	return nil
}

// checkFile warns of a file that cannot be read now but may be later, and fails for one that may not.
func (h *Hostsfile) checkFile() error {
	switch info, err := os.Stat(h.path); {
	case errors.Is(err, os.ErrNotExist):
		hlog.Warningf("File does not exist: %s", h.path)
	case err != nil:
		return fmt.Errorf("unable to access hosts file '%s': %w", h.path, err)
	case info.IsDir():
		hlog.Warningf("Hosts file %q is a directory", h.path)
	default:
		file, err := os.Open(h.path)
		if err != nil {
			hlog.Warningf("Failed to read %q: %v", h.path, err)
			return nil
		}
		file.Close()
	}
	return nil
}

func setup(c *caddy.Controller) error {
	cfg := dnsserver.GetConfig(c)
	h := Hosts{Hostsfile: &Hostsfile{path: defaultFile, ttl: defaultTTL, reload: defaultReload}}
	if err := directive.Parse(c, &settings{h: &h, root: cfg.Root, keys: c.ServerBlockKeys}); err != nil {
		return err
	}
	c.OnStartup(func() error {
		hostsEntries.Hold(h.path)
		h.readHosts()
		stop := make(chan struct{})
		var watcher sync.WaitGroup
		if h.reload > 0 {
			watcher.Go(func() { h.watch(stop) })
		}
		c.OnShutdown(func() error {
			close(stop)
			watcher.Wait()
			hostsEntries.Release(h.path)
			return nil
		})
		return nil
	})
	c.OnRestartFailed(func() error { // what failed may have told of the same file, with other lines beside it
		h.show()
		return nil
	})
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		h.Next = next
		return h
	})
	return nil
}
