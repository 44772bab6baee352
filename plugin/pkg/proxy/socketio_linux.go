package proxy

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// write is a system call on a socket that does not wait, so the scheduler need not be told.
func write(fd int, b []byte) syscall.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return errno
}
