package log

import (
	"os"

	"golang.org/x/sys/unix"
)

// hasRoom reports whether f takes n octets at once. Of what is neither pipe, socket nor terminal that is not known, and
// it is assumed.
func hasRoom(f *os.File, n int) (room bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return true
	}
	room = true
	_ = raw.Control(func(fd uintptr) {
		size, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
		if err != nil { // no pipe
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			if ready, err := unix.Poll(poll, 0); err == nil {
				room = ready > 0
			}
			return
		}
		if unread, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil && unread > 0 {
			// A pipe has its room in pages, of which the first and the last one are used in part.
			size -= unread + 2*os.Getpagesize()
		}
		room = n <= size
	})
	return room
}
