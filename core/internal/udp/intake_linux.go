package udp

import (
	"sync"
	"syscall"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"

	"golang.org/x/sys/unix"
)

// intake is the reading side of a batchSocket: it waits by Go's poller for what comes on its own descriptor, and, once
// there are any, on the sockets of upstreams (upstreams_linux.go).
type intake struct {
	raw         syscall.RawConn
	setDeadline func(time.Time) error                     // of reading
	readBatch   func(fd uintptr) (packets int, err error) // does not wait

	wait      bool
	n         int
	err       error
	receiving func(uintptr) bool // a method as value, made once
	yields    bool               // the processor, and looks again, before it waits; see yield

	upstreams upstreamSockets // that are read by turns with the socket
	wakeMu    sync.Mutex
	woken     bool // guarded by wakeMu
}

func (s *intake) init(raw syscall.RawConn, setDeadline func(time.Time) error, readBatch func(uintptr) (int, error)) {
	s.raw, s.setDeadline, s.readBatch = raw, setDeadline, readBatch
	s.receiving = s.look
}

// receive implements batchSocket.
func (s *intake) receive(wait bool) (int, error) {
	s.wait, s.n, s.err = wait, 0, nil
	if s.upstreams.set != nil {
		return s.receiveByTurns()
	}
	if !wait {
		s.setDeadline(time.Time{}) // else the poller would not let us look
	}
	if err := s.raw.Read(s.receiving); err != nil {
		return 0, err
	}
	return s.n, s.err
}

// look reads a batch. It reports false to wait until there is something.
func (s *intake) look(fd uintptr) bool {
	if s.take(fd); s.n == 0 && s.err == nil && s.yield() {
		s.take(fd)
	}
	// The loop is about to wait: what the log has gathered goes out now.
	if s.n == 0 && s.err == nil {
		log.Idle()
		return !s.wait
	}
	return true
}

// yield lets others have the processor before the loop waits, if this pays, and reports whether it has: there may be
// something to read then. The kernel prefers who has just been woken. A loop that shares a processor with what brings
// the queries (another program, or the kernel itself) is otherwise run for each one of them, and falls asleep again.
// It costs a fifth of a microsecond if nobody else is to run. Go's scheduler is not told: looking after a goroutine
// that is in a system call costs more than the yielding saves.
func (s *intake) yield() bool {
	if !s.yields || !s.wait {
		return false
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	return true
}

func (s *intake) take(fd uintptr) { s.n, s.err = s.readBatch(fd) }

// wake implements batchSocket. A deadline that has passed makes the poller let go of the loop, whichever it waits for.
func (s *intake) wake() {
	s.wakeMu.Lock()
	defer s.wakeMu.Unlock()
	s.woken = true
	s.setDeadline(time.Now())
	if s.upstreams.set != nil {
		s.upstreams.set.SetDeadline(time.Now())
	}
}
