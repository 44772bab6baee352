package conn

import (
	"os"
	"sync"
	"syscall"

	"github.com/coredns/coredns/plugin/pkg/log"

	"golang.org/x/sys/unix"
)

// poller wakes connections that rest when something has come for them. All of the process have one. Its own descriptor
// is in Go's poller: waiting takes no thread.
type poller struct {
	fd int

	mu    sync.Mutex
	conns map[uint64]*Conn // those that rest, by their numbers
	last  uint64           // the number that was given last; none is given twice, other than descriptors
}

var (
	pollerOnce sync.Once
	thePoller  *poller
)

// resting is the poller, nil if there is none.
func resting() *poller {
	pollerOnce.Do(func() {
		p, err := newPoller()
		if err != nil {
			log.Warningf("Idle connections keep their buffers: %v", err)
			return
		}
		thePoller = p
	})
	return thePoller
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	unix.SetNonblock(fd, true)
	f := os.NewFile(uintptr(fd), "epoll")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	p := &poller{fd: fd, conns: map[uint64]*Conn{}}
	go func() {
		defer f.Close()
		events := make([]unix.EpollEvent, 256)
		for p.poll(raw, events) {
		}
	}()
	return p, nil
}

// poll waits for the next events, and serves them.
func (p *poller) poll(raw syscall.RawConn, events []unix.EpollEvent) bool {
	var n int
	err := raw.Read(func(fd uintptr) bool {
		n, _ = unix.EpollWait(int(fd), events, 0)
		return n > 0
	})
	for _, e := range events[:max(n, 0)] {
		p.mu.Lock()
		c := p.conns[uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32]
		p.mu.Unlock()
		if c != nil { // else somebody has been faster
			c.wake()
		}
	}
	return err == nil
}

// add has c woken when something comes. It is called with c.rest.mu held, as is remove.
func (p *poller) add(c *Conn) bool {
	raw, err := lowest(c.conn).(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	p.mu.Lock()
	p.last++
	c.rest.number = p.last
	p.conns[p.last] = c
	p.mu.Unlock()
	// One event: who serves the connection reads on by himself.
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(c.rest.number), Pad: int32(c.rest.number >> 32)}
	op := unix.EPOLL_CTL_ADD
	if c.rest.known {
		op = unix.EPOLL_CTL_MOD
	}
	cerr := raw.Control(func(fd uintptr) { err = unix.EpollCtl(p.fd, op, int(fd), &e) })
	c.rest.known = cerr == nil && err == nil
	return c.rest.known
}

// remove forgets c. Its descriptor stays known, for the next time.
func (p *poller) remove(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c.rest.number)
}

// Resting is how many connections of the process rest: they have no goroutine.
func Resting() int {
	n := int(lights.Load())
	if p := resting(); p != nil {
		p.mu.Lock()
		n += len(p.conns)
		p.mu.Unlock()
	}
	return n
}
