package dnsserver

import (
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

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

	mu      sync.Mutex
	since   time.Time     // when it was gathered or spread last
	again   time.Duration // how long it was to stay spread, last time
	until   time.Time     // to stay spread
	looked  time.Time     // when consider looked last
	used    time.Duration // the time of processors that the process had used then
	pending atomic.Int64  // when consider may look again; see sinceStart
}

const (
	// gatherBelow is the processors that the process uses at most when it is gathered.
	gatherBelow = 1
	// look is how often consider looks at what the process uses.
	look = 100 * time.Millisecond
	// noPause is how long a loop may go on with no pause until it is looked at what the process uses meanwhile, for longUse.
	noPause = 25 * time.Millisecond
	longUse = 75 * time.Millisecond
	// tooLong is how long it may go on at most.
	tooLong = time.Second
	// spreadAbove is the processors that the process uses at least when there are too few pauses. It is a little less than one.
	spreadAbove = 0.95
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
	if s.again = min(2*s.again, longestSpread); now.Sub(s.since) > soon {
		s.again = 0
	}
	s.again = max(s.again, look)
	s.since, s.until = now, now.Add(s.again)
	s.look(now)
	s.gathered.Store(false)
}

// look notes what the process has used until now, and returns how many processors that were since the last look.
func (s *steering) look(now time.Time) float64 {
	used := processTime()
	load := float64(used-s.used) / float64(now.Sub(s.looked)+1)
	s.looked, s.used = now, used
	s.pending.Store(sinceStart() + int64(look))
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
	if sinceStart() < s.pending.Load() || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	now := time.Now()
	if s.gathered.Load() || s.handing.Load() || s.look(now) >= gatherBelow || now.Before(s.until) || !s.steer(0) {
		return
	}
	s.since = now
	s.gathered.Store(true)
}

// pace is what the loop of one socket tells its steering.
type pace struct {
	steering *steering     // nil where there is but one socket
	queue    int           // octets that the kernel queues for the socket at most
	burst    int           // full batches in a row that make a quarter of the queue, of short datagrams
	batches  int           // since the last pause
	full     int           // of them, those since the last one that was not full
	began    time.Time     // of the time that is looked at: when the clock was read first since then, or later, from used on
	unpaused time.Duration // from the pause until then
	used     time.Duration // by the process until then, 0 if that was not looked at
	taken    int           // datagrams since it was looked at what becomes of them
	handed   int           // of them, those that went to workers
}

const (
	// queuedOctets is what a short datagram takes of the queue.
	queuedOctets = 768
	// manyBatches is after how many batches that are not full the clock is read.
	manyBatches = 32
	// manyTaken is after how many datagrams it is looked at what became of them.
	manyTaken = 256
)

// measure finds out what the kernel queues for the socket.
func (p *pace) measure(fd uintptr) {
	p.queue, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	p.burst = max(2, p.queue/4/queuedOctets/batchSize)
}

// took is called when n datagrams have been read from fd.
func (p *pace) took(fd uintptr, n int) {
	if p.steering == nil {
		return
	}
	if p.taken > manyTaken {
		p.share()
	}
	p.taken += n
	if !p.steering.gathered.Load() {
		return
	}
	if p.full++; n < batchSize {
		p.full = 0
	}
	p.batches++
	if p.full == 0 && p.batches%manyBatches != 0 {
		return
	}
	if p.restless() || p.full > 0 && p.full%p.burst == 0 && p.crowded(fd) {
		p.steering.spread()
	}
}

// share tells whether most went to workers.
func (p *pace) share() {
	most := p.handed > p.taken/2
	p.taken, p.handed = 0, 0
	if most != p.steering.handing.Load() {
		p.steering.handing.Store(most)
	}
	if most {
		p.steering.spread()
	}
}

// crowded reports whether half of the queue is taken. As with all calls of a loop the scheduler is not told of this one: it does not wait.
func (p *pace) crowded(fd uintptr) bool {
	var octets, n uint32 = 0, 4 // the first of the numbers: SK_MEMINFO_RMEM_ALLOC
	_, _, e := unix.RawSyscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&octets)), uintptr(unsafe.Pointer(&n)), 0)
	return e == 0 && int(octets) > p.queue/2
}

// restless reports whether there has been no pause for long, although the loop had a processor all the time, or for very long: if it had to
// share one, as with clients on the same machine, that is not so soon.
func (p *pace) restless() bool {
	now := time.Now()
	if p.began.IsZero() {
		p.began = now
	}
	wall := now.Sub(p.began)
	if wall < noPause || p.used > 0 && wall < longUse {
		return false
	}
	before, used := p.used, processTime()
	p.began, p.used = now, used
	if p.unpaused += wall; p.unpaused > tooLong {
		return true
	}
	return before > 0 && float64(used-before) >= spreadAbove*float64(wall)
}

// pause is called when there is nothing to read.
func (p *pace) pause() {
	p.batches, p.full, p.began, p.used, p.unpaused = 0, 0, time.Time{}, 0, 0
	if p.steering != nil && !p.steering.gathered.Load() {
		p.steering.consider()
	}
}
