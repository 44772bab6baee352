package mmsg

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Set is descriptors of which one goroutine waits for any that has something to read. Go's poller knows none of
// them, but the set's own, epoll's: so an idle one costs no goroutine and no stack, and what one goroutine reads by
// turns it finds without a switch to another.
//
// Add and Remove may be called from any goroutine, the others from the one that reads.
type Set[T comparable] struct {
	epoll  *os.File
	raw    syscall.RawConn
	fd     int // epoll's
	events [64]unix.EpollEvent
	ready  []T

	mu     sync.Mutex
	table  []T     // by the index that epoll tells us; zero in unused places
	free   []int32 // unused places of table
	closed bool    // fd is not epoll's any more
}

// silent is the index of a descriptor that only ends the waiting.
const silent = -1

// NewSet makes an empty set.
func NewSet[T comparable]() (*Set[T], error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that Go's poller takes it
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	s := &Set[T]{epoll: os.NewFile(uintptr(fd), "epoll"), fd: fd}
	if s.raw, err = s.epoll.SyscallConn(); err != nil {
		s.epoll.Close()
		return nil, err
	}
	return s, nil
}

// Add makes Poll return v when fd has something to read. The index is for Remove. An error is os.ErrClosed, or the
// system's.
func (s *Set[T]) Add(fd int, v T) (index int32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, os.ErrClosed
	}
	n := len(s.free) - 1
	if index = int32(len(s.table)); n >= 0 {
		index = s.free[n]
	}
	if err := s.control(fd, index); err != nil {
		return 0, err
	}
	if n >= 0 {
		s.free = s.free[:n]
		s.table[index] = v
	} else {
		s.table = append(s.table, v)
	}
	return index, nil
}

// AddSilent makes Wait look again when fd has something to read. The caller reads it then; Poll does not tell.
func (s *Set[T]) AddSilent(fd int) error { return s.control(fd, silent) }

func (s *Set[T]) control(fd int, index int32) error {
	if errno := s.ctl(unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: index}); errno != 0 {
		return os.NewSyscallError("epoll_ctl", errno)
	}
	return nil
}

// ctl does not tell the scheduler: it does not wait.
func (s *Set[T]) ctl(op, fd int, e *unix.EpollEvent) syscall.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(s.fd), uintptr(op), uintptr(fd), uintptr(unsafe.Pointer(e)), 0, 0)
	return errno
}

// Remove forgets what Add returned index for. The descriptor is closed after it, and so leaves epoll, too. After
// Close it does nothing.
func (s *Set[T]) Remove(index int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	var none T
	s.table[index] = none
	s.free = append(s.free, index)
}

// Forget is Remove for a descriptor that stays open, or of whose socket there is another one: epoll would go on to tell
// of it.
func (s *Set[T]) Forget(fd int, index int32) {
	s.Remove(index)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.ctl(unix.EPOLL_CTL_DEL, fd, nil)
	}
}

// Len is the number of those that were added and not removed.
func (s *Set[T]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.table) - len(s.free)
}

// Poll is those that have something to read, without waiting; it is good until the next call. One that was removed
// meanwhile may be among them, or one that took its place.
func (s *Set[T]) Poll() []T {
	var none T
	clear(s.ready) // nothing is held that is gone: what is left behind the next ones would stay for long
	s.ready = s.ready[:0]
	n, errno := uintptr(0), unix.EINTR
	for errno == unix.EINTR {
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(s.fd), uintptr(unsafe.Pointer(&s.events[0])), uintptr(len(s.events)), 0, 0, 0)
	}
	if errno != 0 || n == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed { // meanwhile
		return nil
	}
	for _, ev := range s.events[:n] {
		if ev.Fd == silent {
			continue
		}
		if v := s.table[ev.Fd]; v != none {
			s.ready = append(s.ready, v)
		}
	}
	return s.ready
}

// Wait calls look until that reports true, at first and whenever something may have come. An error is
// os.ErrDeadlineExceeded, or os.ErrClosed.
func (s *Set[T]) Wait(look func(epoll uintptr) bool) error {
	err := s.raw.Read(look)
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return os.ErrClosed // os has another one for a wait that is ended so
}

// SetDeadline ends a Wait at t; zero is never.
func (s *Set[T]) SetDeadline(t time.Time) { s.epoll.SetReadDeadline(t) }

// Close ends Wait and returns what is in the set.
func (s *Set[T]) Close() (rest []T) {
	s.mu.Lock()
	s.closed = true
	var none T
	for _, v := range s.table {
		if v != none {
			rest = append(rest, v)
		}
	}
	s.table = nil
	s.mu.Unlock()
	s.epoll.Close()
	return rest
}
