package proxy

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendAddr is an address as the system wants it. The zero value is none: what is sent goes where the socket is
// connected to.
type sendAddr struct {
	addr unix.RawSockaddrInet6
	size uintptr
}

// sendTo is a system call on a socket that does not wait, so the scheduler need not be told.
func sendTo(fd int, b []byte, to *sendAddr) syscall.Errno {
	var addr unsafe.Pointer
	if to.size > 0 {
		addr = unsafe.Pointer(&to.addr)
	}
	_, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		unix.MSG_DONTWAIT, uintptr(addr), to.size)
	return errno
}
