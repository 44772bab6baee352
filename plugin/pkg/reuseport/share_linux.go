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
