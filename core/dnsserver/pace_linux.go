package dnsserver

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
	// noPause is how long a loop may go on with no pause until it is looked at what the process uses meanwhile, for longUse.
	noPause = 25 * time.Millisecond
	longUse = 75 * time.Millisecond
	// tooLong is how long it may go on at most.
	tooLong = time.Second
	// spreadAbove is the processors that the process uses at least when there are too few pauses. It is a little less than one.
	spreadAbove = 0.95
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
	if p.steering.handing.Store(most); most {
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
