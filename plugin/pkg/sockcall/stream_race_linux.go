//go:build linux && race

package sockcall

import "syscall"

// The race detector takes what happens before a write of the package syscall for done when a read of it ends.
// Programs that rely on that are to find no other races with these connections than with those of net.

// Receive reads from a connection into p what is there. The error is EAGAIN if that is nothing.
func Receive(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Read(int(fd), p)
	return n, errno(err)
}

// Send writes to a connection what of p it takes. The error is EAGAIN if that is nothing.
func Send(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Write(int(fd), p)
	return n, errno(err)
}

func errno(err error) syscall.Errno {
	e, _ := err.(syscall.Errno)
	return e
}
