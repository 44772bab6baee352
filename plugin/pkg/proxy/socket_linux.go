package proxy

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/mmsg"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"golang.org/x/sys/unix"
)

// epollSockets reads any number of sockets on one goroutine. Go's poller knows none of them: it watches the epoll
// descriptor in which they are, and wakes the reader when that has something; all else are system calls that
// do not wait. So a reply costs two of them, and an idle socket no goroutine and no stack.
type epollSockets struct {
	to    receiver
	epoll *os.File
	fd    int // epoll's
	ended chan struct{}

	mu      sync.Mutex
	table   []*epollSocket // by the index that epoll tells us
	free    []int32        // unused places of table
	stopped bool           // fd is not epoll's any more
}

// epollSocket is a descriptor with a count of its users: it is closed when the last one is done with it, so that
// its number can not come to mean something else under a user's hands.
type epollSocket struct {
	fd      int
	users   atomic.Int32 // itself until close, and each call under way; 0 is closed
	owner   *udpSocket
	local   net.Addr
	peer    netip.AddrPort
	index   int32
	segment bool // what leaves together may go together through the kernel
	in      *epollSockets
}

// replySpace is the octets of most replies: they lie together.
const replySpace = 1536 + 64

func newSockets(to receiver) (sockets, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that Go's poller takes it
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	s := &epollSockets{to: to, epoll: os.NewFile(uintptr(fd), "epoll"), fd: fd, ended: make(chan struct{})}
	raw, err := s.epoll.SyscallConn()
	var in *mmsg.Incoming
	if err == nil {
		in, err = mmsg.NewIncoming(replySpace, maxDatagram)
	}
	if err != nil {
		s.epoll.Close()
		return nil, err
	}
	go s.run(raw, in)
	return s, nil
}

func (s *epollSockets) run(raw syscall.RawConn, in *mmsg.Incoming) {
	defer close(s.ended)
	r := &epollReader{sockets: s, in: in, lane: wire.NewLane()}
	defer r.lane.Close()
	defer in.Close()
	for raw.Read(r.drain) == nil {
	}
}

func (s *epollSockets) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.epoll.Close() // ends run
	<-s.ended
}

func (s *epollSockets) open(local netip.Addr, remote netip.AddrPort, owner *udpSocket) (socket, error) {
	fail := func(err error) (socket, error) {
		return nil, &net.OpError{Op: "dial", Net: "udp", Addr: net.UDPAddrFromAddrPort(remote), Err: err}
	}
	to, family := sockaddr(remote)
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(os.NewSyscallError("socket", err))
	}
	if local.IsValid() {
		from, _ := sockaddr(netip.AddrPortFrom(local, 0))
		if err := unix.Bind(fd, from); err != nil {
			unix.Close(fd)
			return fail(os.NewSyscallError("bind", err))
		}
	}
	if err := unix.Connect(fd, to); err != nil { // the kernel chooses a random port
		unix.Close(fd)
		return fail(os.NewSyscallError("connect", err))
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		unix.Close(fd)
		return fail(os.NewSyscallError("getsockname", err))
	}
	e := &epollSocket{fd: fd, owner: owner, local: udpAddr(own), peer: remote, in: s, segment: mmsg.Segments(remote.Addr())}
	e.users.Store(1)
	if err := s.watch(e); err != nil {
		unix.Close(fd)
		return fail(err)
	}
	return e, nil
}

// watch puts e into the table and into epoll. The lock is held for the latter, so that stop cannot come between.
func (s *epollSockets) watch(e *epollSocket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	e.index = int32(len(s.table))
	if n := len(s.free) - 1; n >= 0 {
		e.index = s.free[n]
	}
	err := unix.EpollCtl(s.fd, unix.EPOLL_CTL_ADD, e.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: e.index})
	if err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	if n := len(s.free) - 1; n >= 0 {
		s.free = s.free[:n]
		s.table[e.index] = e
	} else {
		s.table = append(s.table, e)
	}
	return nil
}

func (s *epollSockets) forget(e *epollSocket) {
	s.mu.Lock()
	s.table[e.index] = nil
	s.free = append(s.free, e.index)
	s.mu.Unlock()
}

// hold makes sure that the descriptor stays open until release, and reports false if it is closed.
func (e *epollSocket) hold() bool {
	for {
		n := e.users.Load()
		if n == 0 {
			return false
		}
		if e.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (e *epollSocket) release() {
	if e.users.Add(-1) == 0 {
		unix.Close(e.fd) // leaves epoll, too
	}
}

func (e *epollSocket) close() {
	e.in.forget(e)
	e.release()
}

func (e *epollSocket) addr() net.Addr { return e.local }

func (e *epollSocket) send(b []byte) error {
	if !e.hold() {
		return net.ErrClosed
	}
	defer e.release()
	errno := write(e.fd, b)
	if again(errno) {
		errno = write(e.fd, b)
	}
	if errno != 0 {
		return e.err("write", errno)
	}
	return nil
}

// again reports whether a datagram was not sent for a reason that is none of its own: the first one is about an earlier datagram.
func again(errno syscall.Errno) bool { return errno == unix.ECONNREFUSED || errno == unix.EINTR }

// datagrams is a batch to be sent.
type datagrams struct{ mmsg.Outgoing }

const maxRun = mmsg.Batch

func (d *datagrams) add(b []byte) { d.Add(b) }
func (d *datagrams) clear()       { d.Clear() }

func (d *datagrams) next() (b []byte, ok bool) {
	if d.Sent() == d.Len() {
		return nil, false
	}
	defer d.Skip()
	return d.Datagram(d.Number(d.Sent())), true
}

// number is which datagram, as add counts them, was the i-th to be sent.
func (d *datagrams) number(i int) int { return d.Number(i) }

func (e *epollSocket) sendAll(d *datagrams) (int, error) {
	before := d.Sent()
	if !e.hold() {
		d.Skip()
		return 0, net.ErrClosed
	}
	defer e.release()
	d.Segment = e.segment
	errno := d.Send(uintptr(e.fd))
	if again(errno) {
		errno = d.Send(uintptr(e.fd))
	}
	n := d.Sent() - before
	if errno != 0 {
		d.Skip()
		return n, e.err("write", errno)
	}
	return n, nil
}

func (e *epollSocket) err(op string, errno syscall.Errno) error {
	return &net.OpError{Op: op, Net: "udp", Source: e.local, Addr: net.UDPAddrFromAddrPort(e.peer), Err: os.NewSyscallError(op, errno)}
}

// epollReader is what the reading goroutine alone uses.
type epollReader struct {
	sockets *epollSockets
	lane    *wire.Lane // in which those go on who wait for the replies
	in      *mmsg.Incoming
	batch   batch
	events  [128]unix.EpollEvent
	ready   [128]*epollSocket
}

// drain reads each socket that has something, until none has.
func (r *epollReader) drain(fd uintptr) bool {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&r.events[0])), uintptr(len(r.events)), 0, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || n == 0 {
			return false
		}
		r.lane.Enter()
		for _, e := range r.take(int(n)) {
			r.read(e)
			e.release()
		}
		r.lane.Done(0)
		r.lane.Leave()
	}
}

// take is the sockets of the first n events, held. One that was closed meanwhile is left out, and one
// that took its place in the table is read in vain.
func (r *epollReader) take(n int) []*epollSocket {
	ready := r.ready[:0]
	r.sockets.mu.Lock()
	for i := range n {
		if e := r.sockets.table[r.events[i].Fd]; e != nil && e.hold() {
			ready = append(ready, e)
		}
	}
	r.sockets.mu.Unlock()
	return ready
}

// read reads a batch; epoll tells again if there is more.
func (r *epollReader) read(e *epollSocket) {
	n, errno := r.in.Receive(uintptr(e.fd))
	switch errno {
	case 0:
		to, now := r.sockets.to, r.sockets.to.now()
		for i := range n {
			b := r.in.Datagram(i)
			r.batch.datagrams = append(r.batch.datagrams, b)
			if len(b) > replySpace { // good until the next one only
				to.received(e.owner, &r.batch, r.lane, now)
			}
		}
		to.received(e.owner, &r.batch, r.lane, now)
	case unix.EAGAIN:
	default:
		r.sockets.to.failed(e.owner, e.err("read", errno))
	}
}

func sockaddr(a netip.AddrPort) (unix.Sockaddr, int) {
	if a.Addr().Unmap().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().Unmap().As4()}, unix.AF_INET
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: zoneID(a.Addr().Zone())}, unix.AF_INET6
}

// zoneID is the number of the interface that a zone names, 0 if there is none.
func zoneID(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	var n uint32
	fmt.Sscan(zone, &n)
	return n
}

func udpAddr(sa unix.Sockaddr) net.Addr {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return &net.UDPAddr{IP: sa.Addr[:], Port: sa.Port}
	case *unix.SockaddrInet6:
		a := &net.UDPAddr{IP: sa.Addr[:], Port: sa.Port}
		if sa.ZoneId != 0 {
			if i, err := net.InterfaceByIndex(int(sa.ZoneId)); err == nil {
				a.Zone = i.Name
			}
		}
		return a
	}
	return &net.UDPAddr{}
}
