//go:build linux && !race

package sockcall

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What is known of recvfrom and sendto with connections.
var noReceive, noSend refusal

// Receive reads from a connection into p what is there. The error is EAGAIN if that is nothing.
func Receive(fd uintptr, p []byte) (int, syscall.Errno) {
	if !noReceive.refused() {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
		if !noReceive.suspected(e) {
			return int(n), e
		}
	}
	n, _, e := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	noReceive.settle(e)
	return int(n), e
}

// Send writes to a connection what of p it takes. The error is EAGAIN if that is nothing.
func Send(fd uintptr, p []byte) (int, syscall.Errno) {
	if !noSend.refused() {
		n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if !noSend.suspected(e) {
			return int(n), e
		}
	}
	// Of the signal that this gives in place of an error Go hears, and does nothing.
	n, _, e := unix.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	noSend.settle(e)
	return int(n), e
}
