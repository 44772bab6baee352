package udpsockets

import (
	"syscall"

	"github.com/coredns/coredns/plugin/pkg/sockcall"

	"golang.org/x/sys/unix"
)

// sendAddr is an address as the system wants it. The zero value is none: what is sent goes where the socket is
// connected to.
type sendAddr struct {
	addr unix.RawSockaddrInet6
	size uint32
}

// sendTo sends b.
func sendTo(fd int, b []byte, to *sendAddr) syscall.Errno {
	if to.size == 0 {
		return sockcall.SendTo(uintptr(fd), b, nil, 0)
	}
	return sockcall.SendTo(uintptr(fd), b, &to.addr, to.size)
}
