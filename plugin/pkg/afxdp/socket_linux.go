package afxdp

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Batch is the most datagrams that Receive returns, and replies that Send sends.
const Batch = 64

// ringSize is the entries of a socket's own rings: as many datagrams may wait as there are frames
// for them.
const ringSize = inFrames

// Socket gets what comes on one queue of an interface for one address. One goroutine at a time may
// call its methods, but for Send, which any may call.
type Socket struct {
	device *Device
	queue  *queue
	count  *counters
	file   *os.File
	raw    syscall.RawConn
	fd     int

	in     ring[unix.XDPDesc]
	batch  [Batch]Datagram // what Receive returned
	frames []uint64        // of batch; they are the kernel's again when the next one is received
	free   []uint64        // frames for replies; the last one is the next Space
	id     uint16          // of the next packet of IPv4

	mu    sync.Mutex
	out   ring[unix.XDPDesc] // guarded by mu
	shown uint32             // where out was at the last Send; guarded by mu

	lost uint64 // as the kernel has told; guarded by the device's mu
}

// newSocketOn makes a socket of a queue.
func newSocketOn(q *queue, d *Device) (*Socket, error) {
	fd, err := newSocket()
	if err != nil {
		return nil, err
	}
	s := &Socket{device: d, queue: q, count: d.count, fd: fd, file: os.NewFile(uintptr(fd), "AF_XDP"), id: uint16(rand.Uint32())}
	if s.raw, err = s.file.SyscallConn(); err == nil {
		err = s.open()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// open makes the rings, and binds the socket to the memory that the queue's first socket has.
func (s *Socket) open() error {
	_ = unix.SetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, Batch) // since Linux 6.17; 32 before
	if err := errors.Join(
		s.in.init(s.fd, unix.XDP_RX_RING, ringSize, unix.XDP_PGOFF_RX_RING,
			func(o *unix.XDPMmapOffsets) unix.XDPRingOffset { return o.Rx }),
		s.out.init(s.fd, unix.XDP_TX_RING, ringSize, unix.XDP_PGOFF_TX_RING,
			func(o *unix.XDPMmapOffsets) unix.XDPRingOffset { return o.Tx }),
	); err != nil {
		return err
	}
	return os.NewSyscallError("bind", unix.Bind(s.fd, &unix.SockaddrXDP{
		Flags: unix.XDP_SHARED_UMEM, Ifindex: uint32(s.queue.ifindex), QueueID: uint32(s.queue.number),
		SharedUmemFD: uint32(s.queue.fd),
	}))
}

// Conn is for waiting until there is something to Receive.
func (s *Socket) Conn() syscall.RawConn { return s.raw }

// Link is the number of the interface.
func (s *Socket) Link() uint32 { return uint32(s.queue.ifindex) }

// SetReadDeadline is as for a net.Conn, about Conn.
func (s *Socket) SetReadDeadline(t time.Time) error { return s.file.SetReadDeadline(t) }

// Receive returns a batch of datagrams, empty if none has come. They are good until the next call.
func (s *Socket) Receive() []Datagram {
	s.queue.giveBack(s.frames)
	s.frames = s.frames[:0]
	n, bad := 0, 0
	for n < Batch && s.in.filled() > 0 {
		e := s.in.take()
		s.frames = append(s.frames, e.Addr)
		d := &s.batch[n]
		if d.parse(s.queue.frame(e.Addr)[:e.Len]) {
			if d.Client.Addr().IsLinkLocalUnicast() && d.Client.Addr().Is6() {
				d.Client = netip.AddrPortFrom(d.Client.Addr().WithZone(*s.device.name.Load()), d.Client.Port())
			}
			n++
		} else {
			bad++
		}
	}
	if len(s.frames) > 0 {
		s.in.taken()
		s.count.received.Add(float64(n))
		s.count.dropped.Add(float64(bad))
	}
	return s.batch[:n]
}

// Space is where the next reply may be made, from its begin to its capacity. It is nil if there is
// none: the interface has not sent earlier ones yet.
func (s *Socket) Space() []byte {
	if len(s.free) == 0 {
		if s.free = s.queue.forSending(s.free, Batch); len(s.free) == 0 {
			return nil
		}
	}
	frame := s.queue.frame(s.free[len(s.free)-1])
	return frame[headersLen:][:0:MaxPayload]
}

// Answer has Send send b as the reply to d, and reports whether it can do that: not if b is longer
// than MaxPayload or the interface's packets, or if that is so busy that no frame is free. b may lie in
// the Space that was returned last, and is not kept. Of d the addresses are used.
func (s *Socket) Answer(d *Datagram, b []byte) bool {
	space := s.Space()
	if len(b) > int(s.device.longest.Load()) || space == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out.room() == 0 {
		return false
	}
	at := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	copy(space[:len(b)], b)
	begin := d.putHeaders(s.queue.frame(at)[:headersLen+len(b)], s.id)
	s.id++
	s.out.put(unix.XDPDesc{Addr: at + uint64(begin), Len: uint32(headersLen - begin + len(b))})
	return true
}

// Send sends the replies that were made. The kernel copies them, a batch by each system call; with
// a driver that takes them as they lie it need not even be called.
func (s *Socket) Send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Those of earlier calls may be left, if the interface was down or busy. There may be no frame for new ones, then.
	if s.out.at == s.shown && !s.out.left() {
		return
	}
	s.count.sent.Add(float64(s.out.at - s.shown))
	s.shown = s.out.at
	s.out.written()
	for range 2 * ringSize / Batch {
		if !s.out.left() || !s.out.sleeps() {
			return
		}
		// A frame that cannot be sent is left out, and the ring tells how far it came. If the
		// interface is down, or gone, none is looked at.
		_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		if e == unix.ENETDOWN || e == unix.ENXIO {
			return
		}
	}
}

// countLost counts what the kernel had to drop, since nobody read it. It is called with the
// device's mu held.
func (s *Socket) countLost() {
	var told unix.XDPStatistics
	size := uint32(unsafe.Sizeof(told))
	if _, _, e := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_XDP, unix.XDP_STATISTICS,
		uintptr(unsafe.Pointer(&told)), uintptr(unsafe.Pointer(&size)), 0); e != 0 {
		return
	}
	lost := told.Rx_dropped + told.Rx_ring_full
	s.count.dropped.Add(float64(lost - s.lost))
	s.lost = lost
}

// Close closes the socket. Its Target has left it before.
func (s *Socket) Close() error {
	s.countLost()
	for s.in.mem != nil && len(s.Receive()) > 0 {
	}
	s.queue.giveBack(s.frames)
	s.queue.unsent(s.free)
	s.frames, s.free = nil, nil
	s.in.close()
	s.out.close()
	return s.file.Close()
}
