package udp

import (
	"time"

	"github.com/coredns/coredns/core/internal/reusegroup"

	"golang.org/x/sys/unix"
)

// queue is the system's queue of a batchedSocket. It belongs to the loop.
type queue struct {
	standing
	surplus bool   // it may have more than it is to have
	dropped func() // is told of each query that is dropped; nil if nobody wants to know
}

// shorten notes a batch, and has the queue be as long as that makes it.
func (s *batchedSocket) shorten(n int, full bool, now time.Time) {
	if octets := s.standing.served(n, full, now); octets != 0 {
		lengthen(s.fd, octets)
		s.surplus = octets < queueSpace
	}
}

// lengthen makes the queue of a socket so long, as far as the system lets us: without a privilege, no longer than
// twice of what it is by default.
func lengthen(fd uintptr, octets int) {
	if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, octets) != nil {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, octets)
	}
}

// readNoMore implements batchSocket: who goes on with the socket knows only of a queue that is as long as it can be.
func (s *batchedSocket) readNoMore() {
	if s.standing.shorter != 0 {
		_ = s.raw.Control(func(fd uintptr) { lengthen(fd, queueSpace) })
	}
}

// dropSurplus drops the oldest of a queue that has become shorter: as long as it has more than it is to have, the
// system adds nothing, and what it has has lain there for longest. What was read before is not needed any more.
func (s *batchedSocket) dropSurplus(fd uintptr) {
	if !s.surplus {
		return
	}
	s.surplus = false
	for reusegroup.Queued(fd) > 2*s.standing.shorter {
		n, _ := s.in.Receive(fd)
		for range n {
			s.dropped()
		}
		if n < batchSize {
			return
		}
	}
}
