package dnsserver

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// outgoing is a batch of datagrams that go out by sendmmsg(2), from memory that others own until they are sent. One
// goroutine at a time may use it.
type outgoing struct {
	raw     syscall.RawConn
	partial bool // does not wait until the socket takes more; what it does not take is left

	headers [batchSize]mmsghdr
	vecs    [batchSize]unix.Iovec
	n       int // datagrams there are
	sent    int // of these
	sending func(uintptr) bool
}

func (o *outgoing) init(raw syscall.RawConn) {
	o.raw = raw
	o.sending = o.sendmmsg // made once
	for i := range o.headers {
		o.headers[i].Iov = &o.vecs[i]
		o.headers[i].SetIovlen(1)
	}
}

// add puts b into the batch and returns its header, which is to be given the address and the control message. There
// must be room.
func (o *outgoing) add(b []byte) *mmsghdr {
	h := &o.headers[o.n]
	o.vecs[o.n].Base = &b[0]
	o.vecs[o.n].SetLen(len(b))
	o.n++
	return h
}

// send sends the batch.
func (o *outgoing) send() {
	o.sent = 0
	o.raw.Write(o.sending)
}

// clear makes the batch an empty one.
func (o *outgoing) clear() {
	for i := range o.n {
		o.vecs[i].Base = nil
	}
	o.n = 0
}

// datagram is what add was given as number i.
func (o *outgoing) datagram(i int) []byte { return unsafe.Slice(o.vecs[i].Base, o.vecs[i].Len) }

// sendmmsg sends what there is. It reports false to wait until the socket takes more.
func (o *outgoing) sendmmsg(fd uintptr) bool {
	for o.sent < o.n {
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&o.headers[o.sent])), uintptr(o.n-o.sent), unix.MSG_DONTWAIT, 0, 0)
		switch e {
		case 0:
			o.sent += int(n)
		case unix.EINTR:
		case unix.EAGAIN:
			return o.partial
		default: // this one cannot be sent, such as for a firewall; the others may
			o.sent++
		}
	}
	return true
}
