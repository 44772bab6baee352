package reuseport

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Steer has the system give what comes from now on to the socket with a number, of those that share the address of
// conn. They have numbers from 0 in the order in which they were bound; when one is closed, the last gets its number.
// If there is no such socket, a hash of addresses and ports chooses, as it does at first. It reports false if that
// could not be asked for.
func Steer(conn syscall.Conn, number uint32) bool {
	program := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: number}}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	cerr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
	return cerr == nil && err == nil
}

// Yield has the system give connections that begin from now on to the socket that was bound to l's address after l, if
// there is one. It reports false if that could not be asked for.
func Yield(l net.Listener) bool {
	conn, ok := l.(syscall.Conn)
	return ok && Steer(conn, 1)
}
