package udpsockets

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/mmsg"
	"github.com/coredns/coredns/plugin/pkg/sockcall"

	"golang.org/x/sys/unix"
)

// epollSockets reads any number of sockets. The goroutine of a loop reads those that were opened in it; one of its
// own reads the others.
type epollSockets struct {
	set   *mmsg.Set[eventloop.Readable]
	ended chan struct{}
	loop  *eventloop.Loop // of the own goroutine

	mu sync.Mutex // guards where sockets are watched
}

// epollSocket is a descriptor with a count of its users: it is closed when the last one is done with it, so that
// its number can not come to mean something else under a user's hands.
type epollSocket struct {
	fd    int
	users atomic.Int32 // itself until close, and each call under way; 0 is closed
	to    Receiver
	local net.Addr
	peer  netip.AddrPort // not valid if it is movable
	moves bool           // it is movable
	aimed sendAddr       // of what is sent next, if it is movable
	in    *epollSockets

	// guarded by in.mu
	closed  bool
	watcher eventloop.Watcher // nil if the own goroutine reads it
	index   int32             // for Unwatch, or in set; -1 in none
}

// replySpace is the octets of most replies: they lie together.
const replySpace = 1536 + 64

// New is the system's own way.
func New() (Set, error) {
	set, err := mmsg.NewSet[eventloop.Readable]()
	if err != nil {
		return nil, err
	}
	s := &epollSockets{set: set, ended: make(chan struct{})}
	go s.run()
	return s, nil
}

func (s *epollSockets) run() {
	defer close(s.ended)
	s.loop = eventloop.New() // not by who calls newSockets, who may be in one
	defer s.loop.Close()
	for s.set.Wait(s.drain) == nil {
	}
}

// drain reads each socket that has something, until none has.
func (s *epollSockets) drain(uintptr) bool {
	for ready := s.set.Poll(); len(ready) > 0; ready = s.set.Poll() {
		s.loop.Read(ready)
	}
	return false
}

func (s *epollSockets) Stop() {
	s.set.Close() // ends run
	<-s.ended
}

func (s *epollSockets) Open(local netip.Addr, remote netip.AddrPort, to Receiver, loop *eventloop.Loop) (Socket, error) {
	fail := func(err error) (Socket, error) {
		return nil, &net.OpError{Op: "dial", Net: "udp", Addr: net.UDPAddrFromAddrPort(remote), Err: err}
	}
	at, family := sockaddr(remote)
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
	e := &epollSocket{fd: fd, to: to, in: s, moves: to != nil && to.Moves()}
	if e.moves {
		// Of a Peer's sockets, one for each query, nobody asks the address: a system call less.
		e.Aim(remote)
		queueErrors(fd, family)
	} else {
		if err := unix.Connect(fd, at); err != nil { // the kernel chooses a random port
			unix.Close(fd)
			return fail(os.NewSyscallError("connect", err))
		}
		e.peer = remote
		own, err := ownAddr(fd)
		if err != nil {
			unix.Close(fd)
			return fail(err)
		}
		e.local = own
	}
	e.users.Store(1)
	if err := s.watch(e, loop); err != nil {
		unix.Close(fd)
		return fail(err)
	}
	return e, nil
}

// watch has e read in loop, or by the own goroutine if there is none, or nobody who watches in it.
func (s *epollSockets) watch(e *epollSocket, loop *eventloop.Loop) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if loop != nil {
		if w := loop.Watcher(); w != nil {
			if e.index, err = w.Watch(e.fd, e); err == nil {
				e.watcher = w
				return nil
			}
		}
	}
	e.index, err = s.set.Add(e.fd, e)
	if errors.Is(err, os.ErrClosed) {
		return os.ErrClosed
	}
	return err
}

// Orphaned implements eventloop.Readable: the own goroutine reads it from now on.
func (e *epollSocket) Orphaned() {
	s := e.in
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.closed {
		return
	}
	e.watcher, e.index = nil, -1
	if index, err := s.set.Add(e.fd, e); err == nil { // else it is stopped, or what was sent is as if no reply came
		e.index = index
	}
}

func (s *epollSockets) forget(e *epollSocket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.closed = true
	switch {
	case e.watcher != nil:
		e.watcher.Unwatch(e.index)
	case e.index >= 0:
		s.set.Remove(e.index)
	}
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

func (e *epollSocket) Close() {
	e.in.forget(e)
	e.release()
}

func (e *epollSocket) Addr() net.Addr { return e.local }

func (e *epollSocket) Send(b []byte) error {
	to := e.aimed // when this has gone out the reply may come, and the socket be aimed at another server
	if !e.hold() {
		return net.ErrClosed
	}
	defer e.release()
	errno := sendTo(e.fd, b, &to)
	if again(errno) || e.moves && errno != 0 {
		errno = sendTo(e.fd, b, &to)
	}
	if errno != 0 {
		return e.err("write", errno)
	}
	return nil
}

// again reports whether a datagram was not sent for a reason that is none of its own: the first one is about an
// earlier datagram.
func again(errno syscall.Errno) bool { return errno == unix.ECONNREFUSED || errno == unix.EINTR }

// Datagrams is a batch to be sent.
type Datagrams struct{ mmsg.Outgoing }

// MaxRun is how many datagrams a batch has at most.
const MaxRun = mmsg.Batch

// SendTogether has the system cut the batch into datagrams where it can.
func (d *Datagrams) SendTogether(on bool) { d.Outgoing.Together = on }

// Refused reports whether the system did not do so.
func (d *Datagrams) Refused() bool { return d.Outgoing.Refused }

// Next takes the next one that is not sent yet, for who sends them one by one.
func (d *Datagrams) Next() (b []byte, ok bool) {
	if d.Sent() == d.Len() {
		return nil, false
	}
	defer d.Skip()
	return d.Datagram(d.Number(d.Sent())), true
}

func (e *epollSocket) SendAll(d *Datagrams) (int, error) {
	before := d.Sent()
	if !e.hold() {
		d.Skip()
		return 0, net.ErrClosed
	}
	defer e.release()
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
	failed := &net.OpError{Op: op, Net: "udp", Source: e.local, Err: os.NewSyscallError(op, errno)}
	if e.peer.IsValid() {
		failed.Addr = net.UDPAddrFromAddrPort(e.peer)
	}
	return failed
}

// reading is the memory for what is read in a loop, whoever's it is.
type reading struct {
	in    *mmsg.Incoming
	batch Batch
	one   *oneDatagram // nil before the first
}

var readings eventloop.PerLoop[reading]

// readingIn is that of a loop.
func readingIn(loop *eventloop.Loop) *reading {
	r := readings.Get(loop)
	if r.in == nil {
		r.in = mmsg.NewIncoming(replySpace, maxDatagram)
	}
	return r
}

// ReadIn implements eventloop.Readable. It reads a batch; who watches tells again if there is more.
func (e *epollSocket) ReadIn(loop *eventloop.Loop) {
	if !e.hold() {
		return
	}
	defer e.release()
	r := readingIn(loop)
	if e.moves {
		e.readMoved(r, loop)
		return
	}
	n, errno := r.in.Receive(uintptr(e.fd))
	switch errno {
	case 0:
		now := e.to.Now()
		for i := range n {
			b := r.in.Datagram(i)
			r.batch.Datagrams = append(r.batch.Datagrams, b)
			if len(b) > replySpace { // good until the next one only
				e.to.Received(&r.batch, loop, now)
			}
		}
		e.to.Received(&r.batch, loop, now)
	case unix.EAGAIN:
	default:
		e.to.Failed(netip.AddrPort{}, e.err("read", errno))
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

// ownAddr is the address of a socket. That of package unix asks the system for more than that.
func ownAddr(fd int) (net.Addr, error) {
	var name unix.RawSockaddrInet6
	if errno := sockcall.Name(uintptr(fd), &name); errno != 0 {
		return nil, os.NewSyscallError("getsockname", errno)
	}
	return net.UDPAddrFromAddrPort(mmsg.AddrPort(&name)), nil
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
