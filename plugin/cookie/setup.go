package cookie

import (
	"errors"
	"fmt"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what the Corefile says.
type settings struct {
	root    string
	keys    cookie.Keys
	file    *secretFile
	require bool
	off     bool
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Options: corefile.Table[settings]{
		corefile.Row("secret", "SECRET...", "secrets in hexadecimal, of which the first one signs", 1, -1, setSecrets).Once(),
		corefile.Row("secret_file", "FILE", "a file with a secret a line, read again when it was changed", 1, 1, setFile).Once(),
		corefile.Flag("require", "refuse queries over UDP that have no good cookie", func(s *settings) { s.require = true }),
		corefile.Flag("off", "do not answer cookies", func(s *settings) { s.off = true }),
	},
})

func setSecrets(s *settings, l *corefile.Line) error {
	for i, word := range l.Args {
		secret, err := cookie.ParseSecret(word)
		if err != nil {
			return fmt.Errorf("secret %d: %w", i+1, err)
		}
		s.keys = append(s.keys, secret)
	}
	return nil
}

func setFile(s *settings, l *corefile.Line) (err error) {
	s.file, err = openSecrets(corefile.Below(s.root, l.Args[0]))
	return err
}

var (
	errBoth    = errors.New("secret and secret_file exclude each other")
	errOffWith = errors.New("off excludes all other options")
)

// check finds options that do not go together.
func (s *settings) check() error {
	switch {
	case s.keys != nil && s.file != nil:
		return errBoth
	case s.off && (s.keys != nil || s.file != nil || s.require):
		return errOffWith
	}
	return nil
}

func setup(c *caddy.Controller) error {
	cfg := dnsserver.GetConfig(c)
	s := settings{root: cfg.Root}
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return plugin.Error(pluginName, err)
	}
	cfg.Cookies = dnsserver.Cookies{Off: s.off, Require: s.require}
	switch {
	case s.off:
		return nil
	case s.keys != nil:
		cfg.Cookies.Ring = cookie.NewRing(s.keys)
	case s.file != nil:
		cfg.Cookies.Ring = s.file.ring
		w := &watcher{file: s.file, every: lookAgain}
		c.OnStartup(func() error {
			c.OnShutdown(w.stop)
			return w.start()
		})
	}
	metrics.FromZero(c, func(server string) { countsOf(server) })
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		return &Cookie{Next: next, require: s.require}
	})
	return nil
}
