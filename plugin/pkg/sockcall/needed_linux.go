//go:build !386 && !s390x

package sockcall

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls that nothing stands in for, by number.
const (
	recvmsg = unix.SYS_RECVMSG
	sendmsg = unix.SYS_SENDMSG
)

// message is one recvmsg or sendmsg.
func message(number, fd uintptr, m *unix.Msghdr) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(m)), unix.MSG_DONTWAIT)
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

func accept(listener uintptr, peer *unix.RawSockaddrInet6, size *uint32) (uintptr, syscall.Errno) {
	fd, _, e := unix.RawSyscall6(unix.SYS_ACCEPT4, listener, uintptr(unsafe.Pointer(peer)), uintptr(unsafe.Pointer(size)),
		unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	return fd, e
}

func getsockname(fd uintptr, name *unix.RawSockaddrInet6, size *uint32) syscall.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_GETSOCKNAME, fd, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(size)))
	return e
}
