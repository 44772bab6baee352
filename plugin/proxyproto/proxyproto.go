// Package proxyproto lets the listeners of a server block learn from a proxy in front of them who the client is, by the PROXY
// protocol. It has no part in queries.
//
//	allow 192.0.2.0/24 ──parse──▶ policy ──▶ Config.ProxyProtoConnPolicy ──▶ each connection, each datagram
//
// A policy does not change, and is asked by all listeners at the same time. Start at setup.
package proxyproto

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
	"github.com/pires/go-proxyproto"
)

const (
	pluginName  = "proxyproto"
	maxSessions = 10240 // by default
)

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says.
type settings struct {
	policy
	sessions    time.Duration
	maxSessions int
	seen        bool
}

// policy says whose headers count.
type policy struct {
	allow   []netip.Prefix
	other   proxyproto.Policy // for who is not allowed
	isGiven bool              // other is
}

// policies are what the words of the option default mean.
var policies = map[string]proxyproto.Policy{
	"use":    proxyproto.USE,
	"ignore": proxyproto.IGNORE,
	"reject": proxyproto.REJECT,
	"skip":   proxyproto.SKIP,
}

var errOnce = errors.New("proxy protocol already configured for this server instance")

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Set: func(s *settings, _ *corefile.Line) error {
		if s.seen {
			return errOnce
		}
		s.seen = true
		return nil
	}},
	Unknown: "unknown option '%s'",
	Options: corefile.Table[settings]{
		corefile.Row("allow", "CIDR...", "whose headers are believed", 0, -1, setAllow),
		corefile.Row("default", "use|ignore|reject|skip", "what to do with the headers of others", 1, 1, setDefault),
		corefile.Row("udp_session_tracking", "DURATION [MAX_SESSIONS]", "let a header hold for the datagrams that follow it", 1, 2, setSessions),
	},
})

func setAllow(s *settings, l *corefile.Line) error {
	for _, text := range l.Args {
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		bits, _ := network.Mask.Size()
		addr, _ := netip.AddrFromSlice(network.IP)
		s.allow = append(s.allow, netip.PrefixFrom(addr, bits))
	}
	return nil
}

func setDefault(s *settings, l *corefile.Line) error {
	p, ok := policies[strings.ToLower(l.Args[0])]
	if !ok {
		return l.CountErr()
	}
	s.other, s.isGiven = p, true
	return nil
}

func setSessions(s *settings, l *corefile.Line) error {
	d, err := time.ParseDuration(l.Args[0])
	if err != nil {
		return fmt.Errorf("udp_session_tracking: invalid duration %q: %w", l.Args[0], err)
	}
	if d <= 0 {
		return fmt.Errorf("udp_session_tracking: invalid duration %q: must be positive", l.Args[0])
	}
	s.sessions, s.maxSessions = d, maxSessions
	if len(l.Args) > 1 {
		if s.maxSessions, err = strconv.Atoi(l.Args[1]); err != nil || s.maxSessions <= 0 {
			return fmt.Errorf("udp_session_tracking: invalid max sessions %q: must be a positive integer", l.Args[1])
		}
	}
	return nil
}

// decide is what a header of the sender from means.
func (p *policy) decide(from netip.Addr) proxyproto.Policy {
	if !from.IsValid() {
		return proxyproto.REJECT
	}
	for _, net := range p.allow {
		if net.Contains(from.Unmap().WithZone("")) {
			return proxyproto.USE
		}
	}
	switch {
	case p.isGiven:
		return p.other
	case len(p.allow) == 0:
		return proxyproto.USE
	}
	return proxyproto.IGNORE
}

// connPolicy is decide as listeners ask it.
func (p *policy) connPolicy(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
	var from netip.Addr
	switch a := o.Upstream.(type) {
	case *net.UDPAddr:
		from = a.AddrPort().Addr()
	case *net.TCPAddr:
		from = a.AddrPort().Addr()
	case nil:
	default:
		if ap, err := netip.ParseAddrPort(a.String()); err == nil {
			from = ap.Addr()
		}
	}
	return p.decide(from), nil
}

func setup(c *caddy.Controller) error {
	var s settings
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	config := dnsserver.GetConfig(c)
	if config.ProxyProtoConnPolicy != nil {
		return plugin.Error(pluginName, errOnce)
	}
	config.ProxyProtoConnPolicy = s.connPolicy
	config.ProxyProtoUDPSessionTrackingTTL = s.sessions
	config.ProxyProtoUDPSessionTrackingMaxSessions = s.maxSessions
	config.ProxyProtoIdentity = fmt.Sprint(s)
	return nil
}
