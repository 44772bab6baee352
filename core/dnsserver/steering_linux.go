package dnsserver

import (
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// steering tells the kernel over which sockets of one address it spreads the datagrams that come: over all, or, while one
// loop keeps up, over none but the first. One loop that has more to do takes more at a time, and is woken less often, than
// several that have little: below the load of a core that saves 10 to 20 % of all that a query costs. Where most queries go
// on to workers, on other cores, that is not so.
//
//	      a batch: the queue is half full, the loop takes
//	      a processor and has no pause, or hands most on
//	        ┌──────────────────────▶
//	gathered                        spread
//	        ◀──────────────────────┘
//	      a pause: the process needs less than a core
//
// The loops of the others sleep meanwhile. What is queued for a socket stays there, so nothing is lost on the way.
type steering struct {
	conn     syscall.Conn // one of the sockets: the kernel asks one program for all
	gathered atomic.Bool  // written with mu held
	handing  atomic.Bool  // most queries go to workers

	mu     sync.Mutex
	since  time.Time     // when it was gathered or spread last
	again  time.Duration // how long it was to stay spread, last time
	until  time.Time     // to stay spread
	looked time.Time     // when consider looked last
	used   time.Duration // the time of processors that the process had used then
	next   atomic.Int64  // when consider looks again; see sinceStart
}

const (
	// gatherBelow is the processors that the process uses at most when it is gathered.
	gatherBelow = 1
	// look is how often consider looks at what the process uses.
	look = 100 * time.Millisecond
	// longestSpread bounds for how long gathering is not tried again, where it proved wrong soon.
	longestSpread = 10 * time.Second
	// soon is how long it has to prove right.
	soon = 3 * time.Second

	everywhere = math.MaxUint32 // no socket has that number: then the kernel goes by a hash of addresses and ports
)

// newSteering makes the datagrams of conn's address go to the socket that was bound to it first. It is nil if the
// kernel does not let itself be told (before Linux 4.5).
func newSteering(conn syscall.Conn) *steering {
	s := &steering{conn: conn, since: time.Now()}
	if !s.steer(0) {
		return nil
	}
	s.gathered.Store(true)
	return s
}

// steer has datagrams go to the socket with that number.
func (s *steering) steer(to uint32) bool {
	program := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: to}}
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return false
	}
	cerr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
	return cerr == nil && err == nil
}

// spread has the datagrams go to all sockets.
func (s *steering) spread() {
	if s == nil || !s.gathered.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gathered.Load() || !s.steer(everywhere) {
		return
	}
	now := time.Now()
	if s.again = min(max(2*s.again, look), longestSpread); now.Sub(s.since) > soon {
		s.again = look
	}
	s.since, s.until = now, now.Add(s.again)
	s.look(now)
	s.gathered.Store(false)
}

// look notes what the process has used until now, and returns how many processors that were since the last look.
func (s *steering) look(now time.Time) float64 {
	used := processTime()
	load := float64(used-s.used) / float64(now.Sub(s.looked)+1)
	s.looked, s.used = now, used
	s.next.Store(sinceStart() + int64(look))
	return load
}

// processTime is the time of processors that the process has used.
func processTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// consider is called in a pause of any loop while the datagrams are spread. Where the process needs little, they are gathered.
func (s *steering) consider() {
	if s.handing.Load() || sinceStart() < s.next.Load() || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	now := time.Now()
	if s.gathered.Load() || s.look(now) >= gatherBelow || now.Before(s.until) || !s.steer(0) {
		return
	}
	s.since = now
	s.gathered.Store(true)
}
