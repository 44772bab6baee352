package udp

import (
	"syscall"

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
		switch o.Send(fd) {
		case 0:
			return true
		case unix.EAGAIN:
			return o.partial
		default: // this one cannot be sent, such as for a firewall; the others may
			o.Skip()
		}
	}
}
