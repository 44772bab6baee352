// Package timeouts sets how long the listeners of a server block wait for the clients of connections, and how many queries a
// connection may send. It has no part in queries.
//
//	timeouts { read 2s … } ──parse──▶ settings ──▶ Config.ReadTimeout …
//
// Start at setup.
package timeouts

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/durations"

	"github.com/coredns/caddy"
)

const pluginName = "timeouts"

// Bounds of all durations.
const (
	shortest = time.Second
	longest  = 24 * time.Hour
)

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says. 0 and nil stand for what it does not say.
type settings struct {
	read, write, idle time.Duration
	queries           *int
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name:    pluginName,
	Unknown: "unknown option: '%s'",
	Options: corefile.Table[settings]{
		timeout("read", "for the first query of a connection", func(s *settings, d time.Duration) { s.read = d }),
		timeout("write", "for the client to take a reply", func(s *settings, d time.Duration) { s.write = d }),
		timeout("idle", "for the next query of a connection", func(s *settings, d time.Duration) { s.idle = d }),
		corefile.Row("maxtcpqueries", "N", "queries that a connection may send, -1 for any number", 1, 1, setQueries),
	},
	Check: func(s *settings) error {
		if *s == (settings{}) {
			return errors.New("timeouts block with no timeouts specified")
		}
		return nil
	},
})

func timeout(name, help string, set func(*settings, time.Duration)) corefile.Option[settings] {
	return corefile.Row(name, "DURATION", "how long to wait "+help, 1, 1, func(s *settings, l *corefile.Line) error {
		d, err := durations.NewDurationFromArg(l.Args[0])
		if err != nil {
			return err
		}
		if d < shortest || d > longest {
			return fmt.Errorf("timeout provided '%s' needs to be between 1 second and 24 hours", l.Args[0])
		}
		set(s, d)
		return nil
	})
}

func setQueries(s *settings, l *corefile.Line) error {
	n, err := strconv.Atoi(l.Args[0])
	if err != nil || n < -1 || n == 0 {
		return fmt.Errorf("maxtcpqueries provided '%s' needs to be -1 (unlimited) or a positive integer", l.Args[0])
	}
	s.queries = &n
	return nil
}

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, settings{})
	if err != nil {
		return err
	}
	config := dnsserver.GetConfig(c)
	for _, s := range all {
		if s.read != 0 {
			config.ReadTimeout = s.read
		}
		if s.write != 0 {
			config.WriteTimeout = s.write
		}
		if s.idle != 0 {
			config.IdleTimeout = s.idle
		}
		if s.queries != nil {
			config.MaxTCPQueries = s.queries
		}
	}
	return nil
}
