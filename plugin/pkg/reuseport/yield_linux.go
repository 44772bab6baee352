package reuseport

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// yieldTo chooses the socket with number 1 of those that share an address. They have numbers from 0 in the order in
// which they were bound; when one is closed, the last gets its number. If there is no such socket, a hash chooses, as
// it does without a program.
var yieldTo = [...]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1}}

// Yield has the system give connections that begin from now on to the socket that was bound to l's address after l, if
// there is one. It reports false if that could not be asked for.
func Yield(l net.Listener) bool {
	conn, ok := l.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	cerr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
			&unix.SockFprog{Len: uint16(len(yieldTo)), Filter: &yieldTo[0]})
	})
	return cerr == nil && err == nil
}
