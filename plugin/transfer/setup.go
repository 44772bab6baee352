package transfer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/coredns/caddy"
)

func init() { plugin.Register("transfer", setup) }

// settings is a stanza in the making.
type settings struct {
	stanza
	keys []string // of the server block
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: "transfer",
	Args: corefile.Args[settings]{Syntax: "[ZONE...]", Max: -1, Set: func(s *settings, l *corefile.Line) (err error) {
		s.zones, err = plugin.ZonesFromArgs(l.Args, s.keys)
		return err
	}},
	Options: corefile.Table[settings]{
		corefile.Row("to", "ADDRESS...", "who may transfer, and is notified of changes; * is everybody, and notifies nobody", 1, -1, setTo),
		corefile.Row("source", "ADDRESS", "where notifications come from", 1, 1, setSource),
		corefile.Row("tsig", "KEY [ALGORITHM]", "sign notifications with a key of the tsig plugin", 1, 2, setKey),
	},
	Unknown: `unknown property "%s"`,
	Check: func(s *settings) error {
		if len(s.to) == 0 {
			return errors.New("'to' is required")
		}
		return nil
	},
})

func setTo(s *settings, l *corefile.Line) error {
	for _, text := range l.Args {
		if text == "*" {
			s.to = append(s.to[:len(s.to):len(s.to)], target{any: true})
			continue
		}
		hostPort, err := parse.HostPort(text, transport.Port)
		if err != nil {
			return err
		}
		addr, err := netip.ParseAddrPort(hostPort)
		if err != nil {
			return fmt.Errorf("must specify an IP address: `%s': %w", text, err)
		}
		s.to = append(s.to[:len(s.to):len(s.to)], target{addr: addr})
	}
	return nil
}

func setSource(s *settings, l *corefile.Line) error {
	if s.source.IsValid() {
		return errors.New("source already specified")
	}
	addr, err := netip.ParseAddr(l.Args[0])
	if err != nil {
		return fmt.Errorf("invalid source address %q: must be an IP address", l.Args[0])
	}
	s.source = addr
	return nil
}

func setKey(s *settings, l *corefile.Line) error {
	s.key = tsigKey{name: plugin.Name(l.Args[0]).Normalize()}
	if len(l.Args) > 1 {
		var ok bool
		if s.key.algorithm, ok = keyring.Algorithm(l.Args[1]); !ok {
			return fmt.Errorf("unknown algorithm %q: must be hmac-sha1, hmac-sha224, hmac-sha256, hmac-sha384 or hmac-sha512", l.Args[1])
		}
	}
	return nil
}

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, settings{keys: c.ServerBlockKeys})
	if err != nil {
		return err
	}
	t := &Transfer{block: blockOf(c.ServerBlockKeys)}
	for i := range all {
		t.stanzas = append(t.stanzas, &all[i].stanza)
	}
	cfg := dnsserver.GetConfig(c)
	dnsserver.Check(c, func() error {
		t.findKey = cfg.TsigKey
		for _, s := range t.stanzas {
			if _, ok := t.findKey(s.key.name); s.key.name != "" && !ok {
				return plugin.Error("transfer", fmt.Errorf("tsig: there is no key %q: the tsig plugin has to have it", s.key.name))
			}
		}
		return nil
	})
	c.OnStartup(func() error {
		for _, h := range cfg.Chain() {
			if from, ok := h.(Transferer); ok {
				t.Transferers = append(t.Transferers, from)
			}
		}
		t.inherit()
		t.notify = t.newNotifiers(dnsserver.Listens(c))
		ctx, cancel := context.WithCancel(context.Background())
		var watching sync.WaitGroup
		watching.Go(func() { t.watch(ctx, lookEvery, t.NotifyLater) })
		c.OnShutdown(func() error {
			t.withdraw()
			t.forget()
			cancel()
			watching.Wait()
			t.notify.stop()
			return nil
		})
		return nil
	})
	c.OnRestart(func() error {
		t.offer()
		return nil
	})
	c.OnRestartFailed(func() error {
		t.withdraw()
		return nil
	})
	cfg.AddPlugin(func(next plugin.Handler) plugin.Handler {
		t.Next = next
		return t
	})
	return nil
}
