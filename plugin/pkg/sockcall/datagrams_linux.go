package sockcall

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Header is struct mmsghdr of recvmmsg(2).
type Header struct {
	unix.Msghdr
	N uint32 // the datagram's length
}

// What is known of recvmmsg, sendmmsg, and of recvfrom and sendto with datagrams.
var noReceiveBatch, noSendBatch, noReceiveFrom, noSendTo refusal

// ReceiveBatch receives datagrams that are there into h. The error is EAGAIN if there are none.
func ReceiveBatch(fd uintptr, h []Header) (int, syscall.Errno) {
	return datagrams(&noReceiveBatch, unix.SYS_RECVMMSG, recvmsg, fd, h)
}

// SendBatch sends the datagrams in h, as many as it can, and returns how many; the error is that of the first one.
func SendBatch(fd uintptr, h []Header) (int, syscall.Errno) {
	return datagrams(&noSendBatch, unix.SYS_SENDMMSG, sendmsg, fd, h)
}

// datagrams makes the call many, or if that is refused, the call one for each.
func datagrams(r *refusal, many, one, fd uintptr, h []Header) (int, syscall.Errno) {
	if !r.refused() {
		n, e := batch(many, fd, h)
		if !r.suspected(e) {
			return n, e
		}
	}
	n, e := single(one, fd, h)
	r.settle(e)
	return n, e
}

// batch is one recvmmsg or sendmmsg.
func batch(number, fd uintptr, h []Header) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(h))), uintptr(len(h)), unix.MSG_DONTWAIT, 0, 0)
		switch e {
		case 0:
			return int(n), 0
		case unix.EINTR:
		default:
			return 0, e
		}
	}
}

// single is batch by one call for each.
func single(number, fd uintptr, h []Header) (int, syscall.Errno) {
	for i := range h {
		n, e := message(number, fd, &h[i].Msghdr)
		switch {
		case e == 0:
			h[i].N = uint32(n)
		case i == 0:
			return 0, e
		default:
			return i, 0
		}
	}
	return len(h), 0
}

// ReceiveFrom receives a datagram into b, and who sent it into name, of which size is told the length.
func ReceiveFrom(fd uintptr, b []byte, name *unix.RawSockaddrInet6, size *uint32) (int, syscall.Errno) {
	*size = unix.SizeofSockaddrInet6
	if !noReceiveFrom.refused() {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
			unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(size)))
		if !noReceiveFrom.suspected(e) {
			return int(n), e
		}
	}
	n, e := datagram(recvmsg, fd, b, name, size)
	noReceiveFrom.settle(e)
	return n, e
}

// SendTo sends the datagram b to name, of which the length is size; where a socket is connected, to its peer, without
// a name.
func SendTo(fd uintptr, b []byte, name *unix.RawSockaddrInet6, size uint32) syscall.Errno {
	if !noSendTo.refused() {
		_, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
			unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(name)), uintptr(size))
		if !noSendTo.suspected(e) {
			return e
		}
	}
	_, e := datagram(sendmsg, fd, b, name, &size)
	noSendTo.settle(e)
	return e
}

// datagram is message with b, and the name that it comes from or goes to.
func datagram(number, fd uintptr, b []byte, name *unix.RawSockaddrInet6, size *uint32) (int, syscall.Errno) {
	v := unix.Iovec{Base: unsafe.SliceData(b)}
	v.SetLen(len(b))
	m := unix.Msghdr{Name: (*byte)(unsafe.Pointer(name)), Namelen: *size, Iov: &v}
	m.SetIovlen(1)
	n, e := message(number, fd, &m)
	*size = m.Namelen
	return n, e
}
