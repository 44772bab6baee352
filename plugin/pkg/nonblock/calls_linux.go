//go:build linux && !race

package nonblock

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func receive(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), e
}

func send(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return int(n), e
}
