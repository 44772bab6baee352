package tls

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what one directive says: files, or ACME.
type settings struct {
	files  []string // certificate, key and perhaps CA; empty with ACME
	auth   tls.ClientAuthType
	keyLog string

	acme  acmeSettings // without files
	given []string     // the options of acme
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[CERT KEY [CA]]", Max: 3, Set: func(s *settings, l *corefile.Line) error {
		if len(l.Args) == 1 {
			return l.CountErr()
		}
		if slices.Contains(l.Args, "") { // of a variable of the environment that is not set, say; no CA are all of the system
			return l.Errf("a file without a name: tls %q", l.Args)
		}
		*s = settings{files: l.Args} // of several directives the last one counts
		return nil
	}},
	Unknown: "unknown option '%s'",
	Options: append(corefile.Table[settings]{
		fileOption("client_auth", "nocert|request|require|verify_if_given|require_and_verify", "whether clients show certificates", setClientAuth),
		fileOption("keylog", "FILE", "append the secrets of connections to FILE", func(s *settings, l *corefile.Line) error {
			s.keyLog = l.Args[0]
			return nil
		}),
	}, acmeOptions...),
	Unlisted: func(s *settings, l *corefile.Line) (bool, error) {
		if len(s.files) > 0 {
			return false, nil
		}
		return true, unknownACME(l, "")
	},
	Check: func(s *settings) error {
		if len(s.files) == 0 && len(s.acme.domains) == 0 {
			return errNoDomain
		}
		return nil
	},
})

// fileOption is an option of directives with files.
func fileOption(name, syntax, help string, set func(s *settings, l *corefile.Line) error) corefile.Option[settings] {
	return corefile.Row(name, syntax, help, 0, -1, func(s *settings, l *corefile.Line) error {
		if len(s.files) == 0 {
			return unknownACME(l, ": it is for certificates from files, tls CERT KEY [CA]")
		}
		if len(l.Args) != 1 {
			return l.CountErr()
		}
		return set(s, l)
	})
}

// unknownACME is the error of an option that directives without files do not have.
func unknownACME(l *corefile.Line, why string) error {
	names := make([]string, 0, len(acmeOptions))
	for _, o := range acmeOptions {
		names = append(names, o.Name)
	}
	if near := corefile.Nearest(l.Name(), names); near != "" && why == "" {
		why = fmt.Sprintf(": did you mean '%s'?", near)
	}
	return l.Errf("unknown ACME option %q%s (allowed: %s)", l.Name(), why, strings.Join(names, ", "))
}

func setClientAuth(s *settings, l *corefile.Line) error {
	auth, ok := clientAuth[l.Args[0]]
	if !ok {
		words := make([]string, 0, len(clientAuth))
		for w := range clientAuth {
			words = append(words, w)
		}
		slices.Sort(words)
		return l.Errf("unknown authentication type '%s' (allowed: %s)", l.Args[0], words)
	}
	s.auth = auth
	return nil
}

func setup(c *caddy.Controller) error {
	var s settings
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	var err error
	if len(s.files) > 0 {
		err = setupFiles(c, s)
	} else {
		err = setupACME(c, s.acme)
	}
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	return nil
}

// setupFiles makes the configuration that takes its certificate from files.
func setupFiles(c *caddy.Controller, s settings) error {
	config := dnsserver.GetConfig(c)
	for i := range s.files {
		s.files[i] = under(config.Root, s.files[i])
	}
	f, err := newFiles(s.files, s.auth)
	if err != nil {
		return err
	}
	c.OnStartup(func() error { f.start(watchInterval); return nil })
	dnsserver.OnEnd(c, func() error { f.stop(); return nil })

	config.TLSConfig, config.TLSIdentity = f.config(), fmt.Sprintf("%x", sha256.Sum256(f.first.cert.Leaf.Raw))
	if s.keyLog != "" {
		log := &keyLog{path: under(config.Root, s.keyLog)}
		c.OnStartup(log.open)
		dnsserver.OnEnd(c, log.close)
		config.TLSConfig.KeyLogWriter = log
	}
	return nil
}
