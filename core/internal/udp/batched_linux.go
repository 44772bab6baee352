package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coredns/coredns/core/internal/reusegroup"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/afxdp"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/mmsg"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"golang.org/x/sys/unix"
)

// batchSize is the queries, or replies, of a batch: a bound of memory and of delay. Under load a system call is paid by
// as many queries; on a calm server a batch is what there is, mostly one.
const batchSize = mmsg.Batch

// The octets of most queries and replies lie together. replySpace is no power of two, or the begins of all replies
// would share cache lines.
const (
	querySpace = 1024 + 64
	replySpace = 1536 + 64
)

// batchedSocket reads and writes by recvmmsg and sendmmsg, and waits by Go's poller.
type batchedSocket struct {
	conn *net.UDPConn
	own  netip.AddrPort
	wild bool // bound to all addresses: packets tell which one they were sent to
	is4  bool // of the IPv4 family

	in      *mmsg.Incoming
	out     outgoing // the loop's own replies
	replies []byte   // their memory

	sendQueue *sendQueue   // for replies of others
	newest    *newestFirst // for replies that the socket does not take; nil if they are waited with
	late      *net.UDPConn // the same socket, for those; nil without stack

	fd    uintptr // good as long as the loop reads
	group reusegroup.Loop
	queue
	ended atomic.Bool // it is about to be closed: what is queued may not be sent any more, which nobody would be told
	intake
}

// newBatchedSocket makes conn one that is read in batches. It belongs to the result from then on, unless there is
// an error.
func newBatchedSocket(conn *net.UDPConn) (*batchedSocket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	own := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	own = netip.AddrPortFrom(own.Addr().Unmap(), own.Port())
	s := &batchedSocket{conn: conn, own: own, wild: own.Addr().IsUnspecified()}
	s.intake.init(raw, conn.SetReadDeadline, s.recvmmsg)
	if err := s.configure(); err != nil {
		return nil, err
	}
	s.in = mmsg.NewIncoming(querySpace, MaxQuery+1)
	s.in.WithNames()
	if s.wild {
		s.in.WithControls()
	}
	s.replies = make([]byte, batchSize*replySpace)
	s.out.init(raw)
	s.sendQueue = newSendQueue(raw, s.is4)
	return s, nil
}

// shed makes replies that the socket does not take at once go onto a queue of their own.
func (s *batchedSocket) shed(t *Transport) {
	s.late = duplicate(s.conn) // waiting for it does not hold up the loop
	if s.late == nil {
		return
	}
	s.out.partial = true
	s.newest = newNewestFirst(t.service.Label, t.Saturated, shedSpace, func(b, control []byte, to netip.AddrPort) error {
		_, _, err := s.late.WriteMsgUDPAddrPort(b, control, to)
		return err
	})
}

// configure finds out the family and asks for the addresses that packets are sent to.
func (s *batchedSocket) configure() error {
	var err error
	if cerr := s.raw.Control(func(fd uintptr) {
		var domain int
		if domain, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil {
			return
		}
		s.is4 = domain == unix.AF_INET
		lengthen(fd, queueSpace)
		s.fd = fd
		switch {
		case !s.wild:
		case s.is4:
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		default:
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		}
	}); cerr != nil {
		return cerr
	}
	return os.NewSyscallError("setsockopt", err)
}

// recvmmsg reads a batch, if there is one.
func (s *batchedSocket) recvmmsg(fd uintptr) (int, error) {
	s.dropSurplus(fd)
	n, e := s.in.Receive(fd)
	switch e {
	case 0:
		return n, nil
	case unix.EAGAIN:
		s.standing.empty()
		return 0, nil
	}
	return 0, os.NewSyscallError("recvmmsg", e)
}

func (s *batchedSocket) served(n, handed int, now time.Time) {
	full := n == batchSize
	s.group.Served(s.fd, n, handed, full, now)
	s.shorten(n, full, now)
}

func (s *batchedSocket) hold()     { s.sendQueue.hold() }
func (s *batchedSocket) sendHeld() { s.sendQueue.sendHeld() }

func (s *batchedSocket) packet(i int) []byte { return s.in.Datagram(i) }

func (s *batchedSocket) peer(i int) (client, local netip.AddrPort) {
	name, _ := s.in.Name(i)
	client = mmsg.AddrPort(name)
	return netip.AddrPortFrom(client.Addr().Unmap(), client.Port()), s.localOf(i)
}

// localOf is the address that packet i was sent to.
func (s *batchedSocket) localOf(i int) netip.AddrPort {
	if a, ok := pktinfo(s.in.Control(i)); ok {
		return netip.AddrPortFrom(a.Unmap(), s.own.Port())
	}
	return s.own
}

// pktinfo is the address in a packet's control message. It makes the message one that is fit to be sent
// back: the kernel is to choose the interface, unless the address has a meaning on one link only.
func pktinfo(control []byte) (netip.Addr, bool) {
	if len(control) < unix.SizeofCmsghdr {
		return netip.Addr{}, false
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	data := control[unix.SizeofCmsghdr:]
	switch {
	case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
		info := (*unix.Inet4Pktinfo)(unsafe.Pointer(&data[0]))
		if info.Ifindex = 0; info.Spec_dst == [4]byte{} { // some kernels tell the destination only
			info.Spec_dst = info.Addr
		}
		return netip.AddrFrom4(info.Addr), true
	case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		info := (*unix.Inet6Pktinfo)(unsafe.Pointer(&data[0]))
		a := netip.AddrFrom16(info.Addr)
		if !a.IsLinkLocalUnicast() {
			info.Ifindex = 0
		}
		return a, true
	}
	return netip.Addr{}, false
}

// space implements batchSocket: each reply of a batch has its own place.
func (s *batchedSocket) space() []byte {
	return s.replies[s.out.Len()*replySpace:][:0:replySpace]
}

// answer implements batchSocket. The address of packet i, and the one that it was sent to, are not copied: they
// stay where the kernel has written them, and go back as they are.
func (s *batchedSocket) answer(i int, b []byte) {
	h := s.out.Add(b)
	name, n := s.in.Name(i)
	h.Name, h.Namelen = (*byte)(unsafe.Pointer(name)), n
	if s.wild {
		control := s.in.Control(i)
		h.Control = unsafe.SliceData(control)
		h.SetControllen(len(control))
	}
}

func (s *batchedSocket) send() {
	if s.out.Len() == 0 {
		return
	}
	s.out.send()
	s.stackRest()
	s.out.Clear()
}

// stackRest puts the replies that the socket did not take onto the stack.
func (s *batchedSocket) stackRest() {
	for sent := s.out.Sent(); sent < s.out.Len(); sent++ {
		i := s.out.Number(sent)
		h, control := s.out.Header(i), []byte(nil)
		if s.wild {
			control = unsafe.Slice(h.Control, h.Controllen)
		}
		to := mmsg.AddrPort((*unix.RawSockaddrInet6)(unsafe.Pointer(h.Name)))
		s.newest.push(s.out.Datagram(i), control, to)
	}
}

// leave implements batchSocket. A socket that is connected gets the datagrams of its peer only; here there is none,
// and the group of the address goes on without it (udp(7); since Linux 5.0 also where a program chooses the
// socket).
func (s *batchedSocket) leave() {
	peer, self4 := s.own.Addr(), netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if s.wild {
		if peer = netip.IPv6Loopback(); s.is4 {
			peer = self4
		}
	}
	var to unix.Sockaddr
	if s.is4 {
		to = &unix.SockaddrInet4{Port: nobodysPort, Addr: peer.As4()}
	} else {
		to6 := &unix.SockaddrInet6{Port: nobodysPort, Addr: peer.As16()}
		if i, err := net.InterfaceByName(peer.Zone()); err == nil {
			to6.ZoneId = uint32(i.Index)
		}
		to = to6
	}
	_ = s.raw.Control(func(fd uintptr) {
		if err := unix.Connect(int(fd), to); err != nil && s.wild && !s.is4 { // the machine has IPv4 only
			_ = unix.Connect(int(fd), &unix.SockaddrInet6{Port: nobodysPort, Addr: self4.As16()})
		} // else it is as if others shared the socket
	})
}

// nobodysPort is a port from which no DNS client asks.
const nobodysPort = 1

func (s *batchedSocket) close() error {
	s.ended.Store(true)
	s.sendQueue.Send()
	err := s.conn.Close()
	if s.newest != nil {
		s.newest.end()
		select {
		case <-s.newest.done:
		case <-time.After(service.DrainTime):
		}
		err = errors.Join(err, s.late.Close())
	}
	return errors.Join(err, s.in.Close())
}

// back returns the way back to the sender of packet i.
func (s *batchedSocket) path(i int, room *pathScratch) returnPath {
	client, local := s.peer(i)
	*room = datagramPath{socket: s, to: client, from: local, link: s.linkOf(i)}
	room.control = room.space[:copy(room.space[:], s.in.Control(i))]
	return room
}

// linkOf is the number of the interface that the client's address has its meaning on; 0 if it has the same everywhere.
func (s *batchedSocket) linkOf(i int) uint32 {
	if s.is4 {
		return 0
	}
	name, _ := s.in.Name(i)
	return name.Scope_id
}

// pathScratch is memory for a way back.
type pathScratch = datagramPath

// datagramPath is the way back to the sender of one packet.
type datagramPath struct {
	socket   *batchedSocket
	to, from netip.AddrPort
	link     uint32 // of to, which has but the name of it: another interface may have that by now; 0 for none
	control  []byte // makes the reply leave from the address that was asked; it lies in space
	space    [mmsg.ControlSpace]byte

	direct *directSocket // that the packet came by; nil for socket
	macs   afxdp.MACs    // of the packet, then
}

func (b *datagramPath) remote(room *wire.AddrScratch) net.Addr { return room.Set(wire.UDP, b.to) }
func (b *datagramPath) local(room *wire.AddrScratch) net.Addr  { return room.Set(wire.UDP, b.from) }

// longDatagram is how long a datagram is that goes out alone: so long a one may be too long, which its sender is to
// know.
const longDatagram = 4096

func (b *datagramPath) write(p []byte) error {
	if len(p) <= longDatagram && b.queue(p, nil) {
		return nil
	}
	if b.link != 0 {
		return b.socket.writeOn(b.link, p, b.control, b.to)
	}
	_, _, err := b.socket.conn.WriteMsgUDPAddrPort(p, b.control, b.to)
	return err
}

// writeOn writes to an address of a link, by the link's number. Go would look that up by the name of the zone, as it
// was up to a minute ago.
func (s *batchedSocket) writeOn(link uint32, p, control []byte, to netip.AddrPort) (err error) {
	name := &unix.SockaddrInet6{Addr: to.Addr().As16(), Port: int(to.Port()), ZoneId: link}
	if werr := s.raw.Write(func(fd uintptr) bool {
		err = os.NewSyscallError("sendmsg", unix.Sendmsg(int(fd), p, control, name, 0))
		return !errors.Is(err, unix.EAGAIN)
	}); werr != nil {
		return werr
	}
	return err
}

func (b *datagramPath) later(p []byte) bool {
	s := b.socket
	if len(p) == 0 || len(p) > longDatagram || s.newest != nil || s.ended.Load() {
		return false
	}
	s.sendQueue.later(p, b.control, b.to, b.link)
	return true
}

func (b *datagramPath) flush() { b.socket.sendQueue.flush() }

func (b *datagramPath) queue(p []byte, loop *eventloop.Loop) bool {
	s := b.socket
	switch {
	case b.direct != nil && loop != nil && b.direct.queue(b, p, loop):
	// Of a link newest knows the name only.
	case len(p) == 0 || b.link != 0 && s.newest != nil || s.ended.Load():
		return false
	case s.newest != nil:
		s.newest.push(p, b.control, b.to)
	default:
		s.sendQueue.queue(p, b.control, b.to, b.link, loop)
	}
	return true
}
