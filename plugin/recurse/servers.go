package recurse

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/hostaddrs"
	"github.com/coredns/coredns/plugin/pkg/transport"
)

// Which addresses servers are asked at.

// notAsked are the networks in which no server can be (RFC 6890: not forwardable, or not global).
var notAsked = sync.OnceValue(func() (all []netip.Prefix) {
	for _, n := range strings.Fields(`0.0.0.0/8 127.0.0.0/8 169.254.0.0/16 192.0.0.0/29 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24
		224.0.0.0/4 240.0.0.0/4 ::/128 ::1/128 ::ffff:0:0/96 100::/64 2001:db8::/32 fe80::/10 ff00::/8`) {
		all = append(all, netip.MustParsePrefix(n))
	}
	return all
})

// denied reports whether servers at a are not asked, of which another server has told.
func (s *settings) denied(a netip.Addr) bool {
	return (within(notAsked(), a) || within(s.deny, a)) && !within(s.allow, a)
}

// own reports whether the block listens at a, of which another server has told: a zone that was delegated to us would have
// us ask ourselves.
func (s *settings) own(a netip.AddrPort) bool {
	return listensAt(s.listeners, a) && !within(s.allow, a.Addr())
}

// deniedStub reports whether the server at a is not asked though it is one of a stub: who writes down an address means
// it, wherever it is. Our own listeners would only ask it again.
func (s *settings) deniedStub(a netip.AddrPort) bool {
	never := a.Addr().IsUnspecified() || a.Addr().IsMulticast() || listensAt(s.listeners, a)
	return (never || within(s.deny, a.Addr())) && !within(s.allow, a.Addr())
}

// listenersOf is the addresses at which plain DNS is served, of listeners as metrics tell them.
func listenersOf(labels []string) (all []netip.AddrPort) {
	for _, label := range labels {
		scheme, host, port, err := dnsserver.SplitProtocolHostPort(label)
		if err != nil || scheme != transport.DNS {
			continue
		}
		n, _ := strconv.ParseUint(port, 10, 16)
		at, err := netip.ParseAddr(host)
		if err != nil {
			at = netip.IPv6Unspecified()
		}
		all = append(all, netip.AddrPortFrom(at.Unmap(), uint16(n)))
	}
	return all
}

// listensAt reports whether one of the listeners is reached at a.
func listensAt(listeners []netip.AddrPort, a netip.AddrPort) bool {
	for _, l := range listeners {
		if l.Port() == a.Port() && (l.Addr() == a.Addr() || l.Addr().IsUnspecified() && ofThisHost(a.Addr())) {
			return true
		}
	}
	return false
}

// ofThisHost reports whether a is an address of this machine.
func ofThisHost(a netip.Addr) bool {
	return a.IsLoopback() || slices.Contains(hostaddrs.Recent(), a.WithZone(""))
}

// guarded reports whether an address of name is one of private_addresses. An IPv4 address within an IPv6 one leads there,
// too.
func (s *settings) guarded(name string, a netip.Addr) bool {
	return (within(s.private, a) || within(s.private, a.Unmap())) && !below(name, s.notPrivate)
}

// within reports whether a is in one of the networks.
func within(nets []netip.Prefix, a netip.Addr) bool {
	for _, n := range nets {
		if n.Contains(a) {
			return true
		}
	}
	return false
}
