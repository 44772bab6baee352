//go:build 386 || s390x

package sockcall

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Here, Linux before 4.3 has a single call for all that is done with sockets, and so have sandboxes that were made for
// programs of that time. Go makes it to this day; so do we where nothing else stands in.

// socketcall is that call's number.
const socketcall = 102

// The calls that nothing stands in for, by their numbers in socketcall(2).
const (
	recvmsg = 17
	sendmsg = 16
)

// message is one recvmsg or sendmsg.
func message(number, fd uintptr, m *unix.Msghdr) (int, syscall.Errno) {
	args := struct {
		fd    uintptr
		m     *unix.Msghdr
		flags uintptr
	}{fd, m, unix.MSG_DONTWAIT}
	for {
		n, _, e := syscall.RawSyscall(socketcall, number, uintptr(unsafe.Pointer(&args)), 0)
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

// named is what calls are given that tell an address.
type named struct {
	fd    uintptr
	name  *unix.RawSockaddrInet6
	size  *uint32
	flags uintptr
}

func accept(listener uintptr, peer *unix.RawSockaddrInet6, size *uint32) (uintptr, syscall.Errno) {
	args := named{listener, peer, size, unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC}
	fd, _, e := syscall.RawSyscall(socketcall, 18, uintptr(unsafe.Pointer(&args)), 0)
	return fd, e
}

func getsockname(fd uintptr, name *unix.RawSockaddrInet6, size *uint32) syscall.Errno {
	args := named{fd: fd, name: name, size: size}
	_, _, e := syscall.RawSyscall(socketcall, 6, uintptr(unsafe.Pointer(&args)), 0)
	return e
}
