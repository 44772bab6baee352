package hostaddrs

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
)

// Dial is d.DialContext, for an address that may be one of a link by the name of that, such as [fe80::1%eth0]:53.
// Package net keeps the numbers of names for a minute, and an interface that went away and came back has another one.
// Errors tell the name.
func Dial(ctx context.Context, d *net.Dialer, network, addr string) (net.Conn, error) {
	conn, err := d.DialContext(ctx, network, ByNumber(addr))
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		if to, ok := op.Addr.(*net.TCPAddr); ok && to.Zone != "" {
			to.Zone = zoneOf(addr)
		} else if to, ok := op.Addr.(*net.UDPAddr); ok && to.Zone != "" {
			to.Zone = zoneOf(addr)
		}
	}
	return conn, err
}

// ByNumber is addr with the number of the interface that a link-local address names, as that is now. Other addresses
// stay as they are, and so do those of an interface that there is not.
func ByNumber(addr string) string {
	a, err := netip.ParseAddrPort(addr)
	if err != nil || a.Addr().Zone() == "" {
		return addr
	}
	i, err := net.InterfaceByName(a.Addr().Zone())
	if err != nil {
		return addr
	}
	return netip.AddrPortFrom(a.Addr().WithZone(strconv.Itoa(i.Index)), a.Port()).String()
}

// zoneOf is the zone of an address and port.
func zoneOf(addr string) string {
	a, _ := netip.ParseAddrPort(addr)
	return a.Addr().Zone()
}
