package reuseport

import (
	"strings"
	"syscall"

	"github.com/libp2p/go-reuseport"
	"golang.org/x/sys/unix"
)

// share lets sockets of this user share the address.
//
// go-reuseport also sets SO_REUSEADDR. On a UDP socket that would let any user's process bind the address and take
// the queries, so it is withdrawn there; TCP needs it to listen while old connections are in TIME_WAIT.
func share(network, addr string, c syscall.RawConn) error {
	if err := reuseport.Control(network, addr, c); err != nil {
		return err
	}
	if !strings.HasPrefix(network, "udp") {
		probe(c)
		return nil
	}
	var err error
	if failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 0)
	}); failed != nil {
		return failed
	}
	return err
}

// takeBoth has a socket of IPv6 take what comes by IPv4, too.
func takeBoth(_, _ string, c syscall.RawConn) (err error) {
	_ = c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0) })
	return err
}

// keepAlive has package net leave accepted connections alone: they have the listener's options.
const keepAlive = -1

// probe has connections that a listener accepts probed when they are idle, as those of package net are by default. Set
// once for the listener, it takes no system calls for each connection. Where the system does not know an option, it
// does without, as package net does.
func probe(c syscall.RawConn) {
	_ = c.Control(func(fd uintptr) {
		for _, o := range [...]struct{ level, opt, value int }{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1}, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9},
		} {
			_ = unix.SetsockoptInt(int(fd), o.level, o.opt, o.value)
		}
	})
}
