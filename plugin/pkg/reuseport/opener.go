package reuseport

import (
	"context"
	"net"
	"syscall"

	"github.com/coredns/coredns/plugin/pkg/hostaddrs"
)

// opener opens sockets. Those of all addresses are of both families, which package net makes them only if the loopback
// interface had its addresses when it looked, once for a process: without them clients of one family found nobody.
type opener struct {
	plain, both net.ListenConfig // both is for sockets of all addresses
}

// shared opens sockets with the option, single ones without it.
var (
	shared = opener{
		net.ListenConfig{Control: control, KeepAlive: keepAlive}, net.ListenConfig{Control: controlBoth, KeepAlive: keepAlive},
	}
	single = opener{net.ListenConfig{KeepAlive: keepAlive}, net.ListenConfig{Control: takeBoth, KeepAlive: keepAlive}}
)

// Listeners of Multipath TCP, which Go takes by default, know only a part of the options.
func init() {
	for _, c := range [...]*net.ListenConfig{&shared.plain, &shared.both, &single.plain, &single.both} {
		c.SetMultipathTCP(false)
	}
}

func (o *opener) listen(network, addr string) (net.Listener, error) {
	if all := allOf(network, addr); all != "" {
		if l, err := o.both.Listen(context.Background(), network+"6", all); err == nil {
			return l, nil
		}
	}
	return settled(addr, func() (net.Listener, error) {
		return o.plain.Listen(context.Background(), network, hostaddrs.ByNumber(addr))
	})
}

func (o *opener) listenPacket(network, addr string) (net.PacketConn, error) {
	if all := allOf(network, addr); all != "" {
		if p, err := o.both.ListenPacket(context.Background(), network+"6", all); err == nil {
			return p, nil
		}
	}
	return settled(addr, func() (net.PacketConn, error) {
		return o.plain.ListenPacket(context.Background(), network, hostaddrs.ByNumber(addr))
	})
}

// allOf is addr as all addresses of IPv6, if it stands for all addresses of both families. A system without IPv6 does
// not open that.
func allOf(network, addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && len(network) == len("tcp") && (host == "" || host == "::" || host == "0.0.0.0") {
		return "[::]:" + port
	}
	return ""
}

// controlBoth is control for sockets of both families.
func controlBoth(network, addr string, c syscall.RawConn) error {
	if err := takeBoth(network, addr, c); err != nil {
		return err
	}
	return control(network, addr, c)
}
