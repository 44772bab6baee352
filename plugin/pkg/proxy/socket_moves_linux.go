package proxy

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/mmsg"

	"golang.org/x/sys/unix"
)

// This file gives a socket one port after another (movable), and reads from such sockets. To dissolve the association
// of a datagram socket gives the port back that the system chose, too, and the next connect has it choose anew.

func (e *epollSocket) connect(remote netip.AddrPort) error {
	var sa unix.RawSockaddrInet6
	return e.associate("connect", &sa, rawAddr(&sa, remote))
}

func (e *epollSocket) disconnect() error {
	sa := unix.RawSockaddrInet6{Family: unix.AF_UNSPEC}
	return e.associate("disconnect", &sa, unix.SizeofSockaddrInet6)
}

func (e *epollSocket) associate(op string, sa *unix.RawSockaddrInet6, size uintptr) error {
	if !e.hold() {
		return net.ErrClosed
	}
	defer e.release()
	// It does not wait, as there is no handshake.
	if _, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(e.fd), uintptr(unsafe.Pointer(sa)), size); errno != 0 {
		return e.err(op, errno)
	}
	return nil
}

// rawAddr makes sa the address a, and returns how long it is.
func rawAddr(sa *unix.RawSockaddrInet6, a netip.AddrPort) uintptr {
	ip := a.Addr().Unmap()
	if ip.Is4() {
		four := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		four.Family, four.Addr = unix.AF_INET, ip.As4()
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&four.Port))[:], a.Port())
		return unix.SizeofSockaddrInet4
	}
	sa.Family, sa.Addr, sa.Scope_id = unix.AF_INET6, ip.As16(), zoneID(ip.Zone())
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&sa.Port))[:], a.Port())
	return unix.SizeofSockaddrInet6
}

// senderOf is the address that sa is.
func senderOf(sa *unix.RawSockaddrInet6) netip.AddrPort {
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&sa.Port))[:])
	if sa.Family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(sa)).Addr), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), port)
}

// oneDatagram is memory for one that is received, with its sender.
type oneDatagram struct {
	name unix.RawSockaddrInet6
	size uint32 // of name
	b    [maxDatagram]byte
}

// readMoved reads datagrams with their senders, until the query that is under way on e has its reply: there is most
// often one. Who watches tells again if there is more. The sender is checked though e is connected: a datagram that
// came to the port before may be put into e's queue as late as behind connect.
func (e *epollSocket) readMoved(r *reading, loop *eventloop.Loop) {
	if r.one == nil {
		r.one = new(oneDatagram)
	}
	d, to := r.one, e.in.to
	for range mmsg.Batch {
		d.size = unix.SizeofSockaddrInet6
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(e.fd), uintptr(unsafe.Pointer(&d.b[0])), uintptr(len(d.b)),
			unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&d.name)), uintptr(unsafe.Pointer(&d.size)))
		switch errno {
		case 0:
		case unix.EAGAIN, unix.EINTR:
			return
		default:
			to.failed(e.owner, e.err("read", errno))
			return
		}
		r.batch.datagrams, r.batch.from = append(r.batch.datagrams, d.b[:n]), senderOf(&d.name)
		to.received(e.owner, &r.batch, loop, to.now())
		r.batch.from = netip.AddrPort{}
		if !e.owner.waits() {
			return
		}
	}
}
