package proxy

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// read and write are system calls on sockets that do not wait, so the scheduler need not be told.

func read(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

func write(fd int, b []byte) syscall.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return errno
}
