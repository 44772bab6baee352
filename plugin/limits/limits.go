// Package limits sets what clients of the server block's listeners may take: connections, streams, memory. All of it is limited
// without the directive, too; the defaults are in package dnsserver, limits.go. It has no part in queries.
//
//	limits { connections 1000 } ──parse──▶ Config.Limits
//
// Start at setup.
package limits

import (
	"fmt"
	"math"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

const pluginName = "limits"

func init() { plugin.Register(pluginName, setup) }

type settings = dnsserver.Limits

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Options: corefile.Table[settings]{
		number("connections", 0, math.MaxInt32, "open connections of a listener", func(s *settings) **int { return &s.Connections }),
		corefile.Row("client_connections", "N [IPV4_LENGTH IPV6_LENGTH]", "of these, from one client", 1, 3, setClient).Once(),
		number("streams", 0, math.MaxInt32, "streams of a connection at one time", func(s *settings) **int { return &s.Streams }),
		number("pipeline", 1, 65536, "queries of a TCP or TLS connection that are worked on at one time", func(s *settings) **int { return &s.Pipeline }),
		number("query_bytes", 512, 65535, "length of a query that does not come over UDP", func(s *settings) **int { return &s.QueryBytes }),
		size("header_bytes", 512, "length of the header of an HTTP request or a call", func(s *settings) **int { return &s.HeaderBytes }),
		size("unread_bytes", 4096, "replies of a connection that its client has not taken", func(s *settings) **int { return &s.UnreadBytes }),
		corefile.Duration("handshake", 100*time.Millisecond, time.Hour, "time for a TLS or QUIC handshake, or a PROXY header", func(s *settings, d time.Duration) { s.Handshake = &d }).Once(),
		number("waiting", 0, math.MaxInt32, "queries of the process that wait at one time", func(s *settings) **int { return &s.Waiting }),
		size("in_flight_bytes", 1<<20, "replies of the process that clients have not taken", func(s *settings) **int { return &s.InFlightBytes }),
	},
})

// number is an option with one whole number from least to most, stored where field says.
func number(name string, least, most int, help string, field func(*settings) **int) corefile.Option[settings] {
	return corefile.Int(name, least, most, help, func(s *settings, n int) { *field(s) = &n }).Once()
}

// size is an option with a number of octets, at least so many, or 0 for no limit.
func size(name string, least int, help string, field func(*settings) **int) corefile.Option[settings] {
	return corefile.Row(name, "SIZE", help, 1, 1, func(s *settings, l *corefile.Line) error {
		octets, err := corefile.ParseSize(name, l.Args[0], 0, math.MaxInt)
		if err != nil {
			return err
		}
		n := int(octets)
		if n != 0 && n < least {
			return fmt.Errorf("%s must be 0, for no limit, or at least %d: %d", name, least, n)
		}
		*field(s) = &n
		return nil
	}).Once()
}

func setClient(s *settings, l *corefile.Line) error {
	if len(l.Args) == 2 {
		return l.CountErr()
	}
	n, err := corefile.ParseInt(l.Name(), l.Args[0], 0, math.MaxInt32)
	if err != nil {
		return err
	}
	s.ClientConnections = &n
	if len(l.Args) == 1 {
		return nil
	}
	v4, err := corefile.ParseInt("length of IPv4 prefixes", l.Args[1], 1, 32)
	if err != nil {
		return err
	}
	v6, err := corefile.ParseInt("length of IPv6 prefixes", l.Args[2], 1, 128)
	if err != nil {
		return err
	}
	s.ClientBits4, s.ClientBits6 = &v4, &v6
	return nil
}

func setup(c *caddy.Controller) error {
	var s settings
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	dnsserver.GetConfig(c).Limits = s
	return nil
}
