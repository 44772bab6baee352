//go:build linux && race

package nonblock

import "syscall"

// The race detector takes what happens before a write of the package syscall for done when a read of it ends.
// Programs that rely on that are to find no other races with these connections than with those of net.

func receive(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Read(int(fd), p)
	return n, errno(err)
}

func send(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Write(int(fd), p)
	return n, errno(err)
}

func errno(err error) syscall.Errno {
	e, _ := err.(syscall.Errno)
	return e
}
