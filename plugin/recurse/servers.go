package recurse

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coredns/coredns/core/dnsserver"
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

// deniedStub reports whether the server at a is not asked though it is one of a stub: who writes down an address means
// it, wherever it is. Our own listeners would only ask it again.
func (s *settings) deniedStub(a netip.AddrPort) bool {
	never := a.Addr().IsUnspecified() || a.Addr().IsMulticast() || listensAt(s.listeners, a)
	return (never || within(s.deny, a.Addr())) && !within(s.allow, a.Addr())
}

// listensAt reports whether a is the address of one of the listeners, which are told as metrics tell them.
func listensAt(listeners []string, a netip.AddrPort) bool {
	for _, label := range listeners {
		scheme, host, port, err := dnsserver.SplitProtocolHostPort(label)
		if err != nil || scheme != transport.DNS || port != strconv.Itoa(int(a.Port())) {
			continue
		}
		at, _ := netip.ParseAddr(host)
		if at.Unmap() == a.Addr() || (!at.IsValid() || at.IsUnspecified()) && ofThisHost(a.Addr()) {
			return true
		}
	}
	return false
}

// ofThisHost reports whether a is an address of this machine.
func ofThisHost(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	addrs, _ := net.InterfaceAddrs()
	return slices.ContainsFunc(addrs, func(n net.Addr) bool {
		p, err := netip.ParsePrefix(n.String())
		return err == nil && p.Addr().Unmap() == a.WithZone("")
	})
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
