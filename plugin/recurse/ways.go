package recurse

import (
	"net"
	"net/netip"
	"sync/atomic"
)

// This file finds out by which families servers can be asked. A machine that has just started may get a way to one
// after the other, and one that is moved may lose one.

// usable reports whether the system has a way to an address; nothing is sent. It is a variable for tests.
var usable = func(a netip.Addr) bool {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 53)))
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// findWays leaves a family out while the system has no way to the root's servers over it, but over the other.
func (r *resolver) findWays() {
	if !r.conf.IPv4 || !r.conf.IPv6 {
		return
	}
	four, six := false, false
	for _, h := range builtinHints().Hosts {
		four, six = four || usable(h.Addrs[0]), six || usable(h.Addrs[1])
	}
	leaveOut(&r.conf.Shared.NoIPv4, six && !four, "IPv4", "IPv6")
	leaveOut(&r.conf.Shared.NoIPv6, four && !six, "IPv6", "IPv4")
}

// tellSilence tells that servers of a family are silent, or not any more.
func tellSilence(six, silent bool) {
	family, other := "IPv4", "IPv6"
	if six {
		family, other = other, family
	}
	if silent {
		logger.Warningf("No server replies over %s: they are asked over %s first", family, other)
	} else {
		logger.Infof("Servers reply over %s", family)
	}
}

// leaveOut leaves a family out, or takes it again.
func leaveOut(left *atomic.Bool, on bool, family, other string) {
	switch {
	case left.Swap(on) == on:
	case on:
		logger.Infof("There is no way to servers over %s: they are asked over %s only", family, other)
	default:
		logger.Infof("There is a way to servers over %s", family)
	}
}
