// Package reuseport opens listening sockets of which several may be bound to one address and port, so that every core
// and every server of a restart has its own. The kernel spreads connections and datagrams over them.
//
// Where a system has no such option the sockets are plain ones, and a second one cannot be opened. That a socket
// does not take the option is only warned of. Start at Listen.
package reuseport

import (
	"net"
	"syscall"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/neterr"
)

// Listen is net.Listen with the option SO_REUSEPORT.
func Listen(network, addr string) (net.Listener, error) {
	return shared.listen(network, addr)
}

// ListenPacket is net.ListenPacket with the option SO_REUSEPORT. If the system is to choose the port, it chooses one
// that nobody has: with the option from the start, Linux may choose that of another socket that has it.
func ListenPacket(network, addr string) (net.PacketConn, error) {
	if _, port, err := net.SplitHostPort(addr); err == nil && (port == "0" || port == "") {
		p, err := single.listenPacket(network, addr)
		if err != nil {
			return nil, err
		}
		return Share(p, addr), nil
	}
	return shared.listenPacket(network, addr)
}

// ListenAlone is Listen; others tells whether somebody listens at addr already, with that option. A socket that is
// there has been bound by nobody before: where one was bound to find that out, what came meanwhile would be lost with
// it. Sockets that are opened later may share the address.
func ListenAlone(network, addr string) (l net.Listener, others bool, err error) {
	return alone(network, addr, single.listen, Listen)
}

// ListenPacketAlone is ListenPacket with what ListenAlone tells.
func ListenPacketAlone(network, addr string) (p net.PacketConn, others bool, err error) {
	return alone(network, addr, single.listenPacket, ListenPacket)
}

// alone opens a socket that shares its address only from then on, or if that is not possible, one that does at once.
func alone[S any](
	network, addr string, open, openShared func(network, addr string) (S, error),
) (socket S, others bool, err error) {
	if socket, err = open(network, addr); err == nil {
		return Share(socket, addr), false, nil
	}
	others = neterr.Is(err, syscall.EADDRINUSE)
	socket, err = openShared(network, addr)
	return socket, others && err == nil, err
}

// Share lets further sockets be bound to the address of a socket that somebody else has opened, as far as the system
// lets them: they must be of the same user. It returns the socket.
func Share[S any](socket S, addr string) S {
	c, ok := any(socket).(syscall.Conn)
	if !ok {
		return socket
	}
	network := "tcp"
	if _, ok := any(socket).(net.PacketConn); ok {
		network = "udp"
	}
	if raw, err := c.SyscallConn(); err == nil {
		_ = control(network, addr, raw) // it has warned
	}
	return socket
}

// control sets the option on a socket; it may be bound already.
func control(network, addr string, c syscall.RawConn) error {
	if err := share(network, addr, c); err != nil {
		log.Warningf("Failed to set SO_REUSEPORT on the %s socket for %s: %s", network, addr, err)
	}
	return nil
}
