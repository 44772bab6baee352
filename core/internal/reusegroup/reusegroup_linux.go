package reusegroup

import (
	"math"
	"syscall"
	"time"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/reuseport"

	"golang.org/x/sys/unix"
)

// New is the group of conn, one of the sockets of an address, consolidated; or spread for a while if there are others,
// of another process. It is nil if the kernel does not let itself be told.
func New(conn syscall.Conn, others bool) *Group {
	return newGroup(func(toFirst bool) bool { return steer(conn, toFirst) }, processTime, others, time.Now())
}

// Join is the loop of the socket fd. g may be nil.
func (g *Group) Join(fd uintptr) Loop {
	l := Loop{group: g}
	if g != nil {
		l.full = func(fd uintptr) bool {
			octets, space := queue(fd) // its loop may change how long it is
			return octets > space/2
		}
	}
	return l
}

// steer has datagrams go to the socket that was bound first; or, as there is no socket with the number that is
// given, to those that a hash of addresses and ports chooses.
func steer(conn syscall.Conn, toFirst bool) bool {
	number := uint32(math.MaxUint32)
	if toFirst {
		number = 0
	}
	return reuseport.Steer(conn, number)
}

// Queued is the octets that the kernel has queued for a socket, as it counts them; 0 if it does not say. The scheduler
// is not told of the call: it does not wait.
func Queued(fd uintptr) int {
	octets, _ := queue(fd)
	return octets
}

// queue is also how many there may be.
func queue(fd uintptr) (octets, space int) {
	var info [2]uint32 // the first of the numbers: SK_MEMINFO_RMEM_ALLOC, SK_MEMINFO_RCVBUF
	n := uint32(unsafe.Sizeof(info))
	_, _, e := unix.RawSyscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&n)), 0)
	if e != 0 {
		return 0, 0
	}
	return int(info[0]), int(info[1])
}

// processTime is the time of processors that the process has used.
func processTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
