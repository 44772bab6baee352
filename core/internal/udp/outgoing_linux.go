package udp

import (
	"net/netip"
	"syscall"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/mmsg"

	"golang.org/x/sys/unix"
)

// outgoing is a batch of datagrams that go out on a socket of Go's poller.
type outgoing struct {
	mmsg.Outgoing
	raw     syscall.RawConn
	partial bool // does not wait until the socket takes more; what it does not take is left
	sending func(uintptr) bool
}

func (o *outgoing) init(raw syscall.RawConn) {
	o.raw = raw
	o.sending = o.sendmmsg // made once
}

// send sends the batch.
func (o *outgoing) send() { o.raw.Write(o.sending) }

// sendmmsg sends what there is. It reports false to wait until the socket takes more.
func (o *outgoing) sendmmsg(fd uintptr) bool {
	for {
		switch e := o.Send(fd); e {
		case 0:
			return true
		case unix.EAGAIN:
			return o.partial
		case unix.EPERM, unix.ENOBUFS, unix.ENOMEM:
			o.tell(e)
			fallthrough
		default: // this one cannot be sent, such as for a firewall; the others may
			o.Skip()
		}
	}
}

// unsent is for lines about replies that this machine does not send.
var unsent log.Seldom

// tell tells that the next reply is not sent, for a reason that may hold for all of them: a firewall, or a full table
// of connections. What is wrong with one client's address is told to nobody: anybody may make that up.
func (o *outgoing) tell(e syscall.Errno) {
	if unsent.May() {
		to := mmsg.AddrPort((*unix.RawSockaddrInet6)(unsafe.Pointer(o.Header(o.Number(o.Sent())).Name)))
		log.Warningf("Replies over UDP are lost, such as one to %s: sendmmsg: %v", netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), e)
	}
}
