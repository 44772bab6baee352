package sockcall

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Accept accepts a connection of a listener, and tells who has made it. The error is EAGAIN if there is none.
func Accept(listener uintptr, peer *unix.RawSockaddrInet6) (fd int, e syscall.Errno) {
	for {
		size := uint32(unix.SizeofSockaddrInet6)
		n, e := accept(listener, peer, &size)
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

// Name tells what address a socket is bound to.
func Name(fd uintptr, name *unix.RawSockaddrInet6) syscall.Errno {
	size := uint32(unix.SizeofSockaddrInet6)
	return getsockname(fd, name, &size)
}
