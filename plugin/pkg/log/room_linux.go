package log

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// roomOf is how many octets f takes at once, at least n if that is not known.
func roomOf(f *os.File, n int) (room int) {
	if info, err := f.Stat(); err != nil || info.Mode().IsRegular() {
		return math.MaxInt
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return math.MaxInt
	}
	room = n
	_ = raw.Control(func(fd uintptr) {
		size, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
		if err != nil { // a socket or a terminal
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			if ready, err := unix.Poll(poll, 0); err == nil && ready == 0 {
				room = 0
			}
			return
		}
		if unread, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil && unread > 0 {
			// A pipe has its room in pages, of which the first and the last one are used in part.
			size -= unread + 2*os.Getpagesize()
		}
		room = max(size, 0)
	})
	return room
}
