//go:build unix

package dnsserver

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// A process that is begun by SIGUSR2 gets copies of the sockets. Those that package net makes are made to block when
// they are handed on, and with them, for O_NONBLOCK belongs to what is copied, the sockets of this process: until the
// other one has begun, or for good if it cannot begin. Whoever then accepts where nobody has come waits in the system,
// and is not woken by the end of the listener.

// unblocked is a TCP listener whose copies do not block.
type unblocked struct{ *net.TCPListener }

// File is a copy of the socket. It overrides that of package net.
func (l unblocked) File() (*os.File, error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var ferr error
	if err := raw.Control(func(of uintptr) { fd, ferr = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if ferr != nil {
		return nil, os.NewSyscallError("fcntl", ferr)
	}
	return os.NewFile(uintptr(fd), l.Addr().String()), nil
}

// handedOn is l as others may copy it, and plain is it again.
func handedOn(l net.Listener) net.Listener {
	if t, ok := l.(*net.TCPListener); ok {
		return unblocked{t}
	}
	return l
}

func plain(l net.Listener) net.Listener {
	if u, ok := l.(unblocked); ok {
		return u.TCPListener
	}
	return l
}
