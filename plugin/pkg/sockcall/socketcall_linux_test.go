//go:build 386

package sockcall

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Linux before 4.3 has none of the calls that sockets have of their own, but for those of batches.
func TestOldSystem(t *testing.T) {
	unknownAgain(t)
	calls := []uint32{unix.SYS_RECVMMSG, unix.SYS_SENDMMSG}
	for c := uint32(unix.SYS_SOCKET); c <= unix.SYS_SHUTDOWN; c++ {
		calls = append(calls, c)
	}
	refuse(t, unix.ENOSYS, calls...)
	exchanges(t)
	accepts(t)
}
