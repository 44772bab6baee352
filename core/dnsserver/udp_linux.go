package dnsserver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"golang.org/x/sys/unix"
)

// A batch is so many packets. Of 8, 32 and 128, with 32 a query costs least.
const batchSize = 32

// Memory of a packet: what most queries need lies together, so that the caches hold it; the rest of a long
// one is read into pages that are touched for nothing else.
const (
	querySpace = 1024 + 64 // not a power of two, or the begins of all packets would share cache lines
	queryRest  = MaxUDPQuery + 1
	replySpace = 1536 + 64
)

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	unix.Msghdr
	n uint32
}

// batchedSocket reads and writes by recvmmsg and sendmmsg, and waits by Go's poller.
type batchedSocket struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	own  netip.AddrPort
	wild bool // bound to all addresses: packets tell which one they were sent to
	is4  bool // of the IPv4 family

	in       [batchSize]mmsghdr
	inVec    [batchSize][2]unix.Iovec
	names    [batchSize]unix.RawSockaddrInet6
	controls [batchSize][controlSpace]byte
	queries  []byte
	rests    []byte   // mapped
	long     []byte   // a query that does not lie in one piece
	out      outgoing // the loop's own replies
	replies  []byte   // their memory

	outbox *outbox      // for replies of others
	stack  *replyStack  // for replies that the socket does not take; nil if they are waited with
	late   *net.UDPConn // the same socket, for those; nil without stack

	n         int
	wait      bool
	err       error
	receiving func(uintptr) bool // a method as value, made once
}

// controlSpace is the room for a packet's control message; IPv6's is the longer.
const controlSpace = unix.SizeofCmsghdr + (unix.SizeofInet6Pktinfo+7)&^7

func newBatchedSocket(conn *net.UDPConn) (*batchedSocket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	own := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	own = netip.AddrPortFrom(own.Addr().Unmap(), own.Port())
	s := &batchedSocket{conn: conn, raw: raw, own: own, wild: own.Addr().IsUnspecified()}
	if err := s.configure(); err != nil {
		return nil, err
	}
	s.rests, err = unix.Mmap(-1, 0, batchSize*queryRest, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("memory for packets: %w", err)
	}
	s.queries = make([]byte, batchSize*querySpace)
	s.replies = make([]byte, batchSize*replySpace)
	s.receiving = s.recvmmsg
	s.out.init(raw)
	s.outbox = newOutbox(raw)
	for i := range batchSize {
		first, rest := s.queries[i*querySpace:][:querySpace], s.rests[i*queryRest:][:queryRest]
		s.inVec[i][0].Base, s.inVec[i][1].Base = &first[0], &rest[0]
		s.inVec[i][0].SetLen(len(first))
		s.inVec[i][1].SetLen(len(rest))
		s.in[i].Iov = &s.inVec[i][0]
		s.in[i].SetIovlen(2)
		s.in[i].Name = (*byte)(unsafe.Pointer(&s.names[i]))
		if s.wild {
			s.in[i].Control = &s.controls[i][0]
		}
	}
	return s, nil
}

// shed makes replies that the socket does not take at once go onto a stack of server.
func (s *batchedSocket) shed(server *Server) {
	s.late = duplicate(s.conn) // waiting for it does not hold up the loop
	if s.late == nil {
		return
	}
	s.out.partial = true
	s.stack = newReplyStack(server, shedSpace, func(b, control []byte, to netip.AddrPort) error {
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
		enlarge(int(fd))
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

// queueSpace is the octets that the system may queue for a socket, as it counts them: a burst of queries waits there.
const queueSpace = 4 << 20

// enlarge makes the queue of a socket longer, as far as the system lets us: without a privilege, twice as long as by default.
func enlarge(fd int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, queueSpace) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, queueSpace)
	}
}

func (s *batchedSocket) receive(wait bool) (int, error) {
	s.wait, s.n, s.err = wait, 0, nil
	if !wait {
		s.conn.SetReadDeadline(time.Time{}) // else the poller would not let us look
	}
	if err := s.raw.Read(s.receiving); err != nil {
		return 0, err
	}
	return s.n, s.err
}

// recvmmsg reads a batch. It reports false to wait until there is something.
func (s *batchedSocket) recvmmsg(fd uintptr) bool {
	for i := range s.in {
		s.rearm(i)
	}
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&s.in[0])), batchSize, unix.MSG_DONTWAIT, 0, 0)
		switch e {
		case 0:
			s.n = int(n)
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			log.Idle()
			return !s.wait
		default:
			s.err = os.NewSyscallError("recvmmsg", e)
			return true
		}
	}
}

// rearm makes a header ready for the next packet.
func (s *batchedSocket) rearm(i int) {
	h := &s.in[i]
	h.Namelen = unix.SizeofSockaddrInet6
	if s.wild {
		h.SetControllen(controlSpace)
	}
}

func (s *batchedSocket) packet(i int) []byte {
	n := int(s.in[i].n)
	if n <= querySpace {
		return s.queries[i*querySpace:][:n:querySpace]
	}
	s.long = append(s.long[:0], s.queries[i*querySpace:][:querySpace]...)
	s.long = append(s.long, s.rests[i*queryRest:][:n-querySpace]...)
	return s.long
}

func (s *batchedSocket) peer(i int) (client, local netip.AddrPort) {
	client = addrPortOf(&s.names[i])
	return netip.AddrPortFrom(client.Addr().Unmap(), client.Port()), s.localOf(i)
}

// addrPortOf is a socket address as the kernel writes it.
func addrPortOf(name *unix.RawSockaddrInet6) netip.AddrPort {
	port := *(*[2]byte)(unsafe.Pointer(&name.Port)) // in network order
	p := uint16(port[0])<<8 | uint16(port[1])
	if name.Family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(name)).Addr), p)
	}
	a := netip.AddrFrom16(name.Addr)
	if name.Scope_id != 0 {
		a = a.WithZone(zoneOf(name.Scope_id))
	}
	return netip.AddrPortFrom(a, p)
}

// zoneOf is the name of an interface, by which link-local addresses are told apart.
func zoneOf(index uint32) string {
	if i, err := net.InterfaceByIndex(int(index)); err == nil {
		return i.Name
	}
	return fmt.Sprint(index)
}

// localOf is the address that packet i was sent to.
func (s *batchedSocket) localOf(i int) netip.AddrPort {
	if a, ok := pktinfo(s.control(i)); ok {
		return netip.AddrPortFrom(a.Unmap(), s.own.Port())
	}
	return s.own
}

func (s *batchedSocket) control(i int) []byte {
	if !s.wild {
		return nil
	}
	return s.controls[i][:s.in[i].Controllen]
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

func (s *batchedSocket) space() []byte {
	return s.replies[s.out.n*replySpace:][:0:replySpace]
}

func (s *batchedSocket) answer(i int, b []byte) {
	h := s.out.add(b)
	h.Name, h.Namelen = s.in[i].Name, s.in[i].Namelen
	if s.wild {
		h.Control, h.Controllen = s.in[i].Control, s.in[i].Controllen
	}
}

func (s *batchedSocket) send() {
	if s.out.n == 0 {
		return
	}
	s.out.send()
	s.stackRest()
	s.out.clear()
}

// stackRest puts the replies that the socket did not take onto the stack.
func (s *batchedSocket) stackRest() {
	for i := s.out.sent; i < s.out.n; i++ {
		h, control := &s.out.headers[i], []byte(nil)
		if s.wild {
			control = unsafe.Slice(h.Control, h.Controllen)
		}
		to := addrPortOf((*unix.RawSockaddrInet6)(unsafe.Pointer(h.Name)))
		s.stack.push(s.out.datagram(i), control, to)
	}
}

func (s *batchedSocket) wake() { s.conn.SetReadDeadline(time.Now()) }

func (s *batchedSocket) close() error {
	s.outbox.Send()
	err := s.conn.Close()
	if s.stack != nil {
		s.stack.end()
		select {
		case <-s.stack.done:
		case <-time.After(drainTime):
		}
		err = errors.Join(err, s.late.Close())
	}
	if s.rests != nil {
		err = errors.Join(err, unix.Munmap(s.rests))
		s.rests = nil
	}
	return err
}

// back returns the way back to the sender of packet i.
func (s *batchedSocket) back(i int, room *backRoom) back {
	client, local := s.peer(i)
	*room = datagramBack{socket: s, to: client, from: local}
	room.control = room.space[:copy(room.space[:], s.control(i))]
	return room
}

// backRoom is memory for a way back.
type backRoom = datagramBack

// datagramBack is the way back to the sender of one packet.
type datagramBack struct {
	socket   *batchedSocket
	to, from netip.AddrPort
	control  []byte // makes the reply leave from the address that was asked; it lies in space
	space    [controlSpace]byte
}

func (b *datagramBack) remote() net.Addr { return new(wire.AddrRoom).Set(wire.UDP, b.to) }
func (b *datagramBack) local() net.Addr  { return new(wire.AddrRoom).Set(wire.UDP, b.from) }

// longDatagram is how long a datagram is that goes out alone: so long a one may be too long, which its sender is to know.
const longDatagram = 4096

func (b *datagramBack) write(p []byte) error {
	if len(p) <= longDatagram && b.post(p, nil) {
		return nil
	}
	_, _, err := b.socket.conn.WriteMsgUDPAddrPort(p, b.control, b.to)
	return err
}

func (b *datagramBack) post(p []byte, lane *wire.Lane) bool {
	s := b.socket
	switch {
	case len(p) == 0 || b.to.Addr().Zone() != "":
		return false
	case s.stack != nil:
		s.stack.push(p, b.control, b.to)
	default:
		s.outbox.post(p, b.control, b.to, s.is4, lane)
	}
	return true
}
