package mmsg

import (
	"syscall"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/sockcall"
	"golang.org/x/sys/unix"
)

// Outgoing is a batch of datagrams to be sent, from memory that others own until then. The zero value is an empty
// one. It must not be copied, and one goroutine at a time may use it.
type Outgoing struct {
	headers [Batch]Header
	vecs    [Batch]unix.Iovec
	n       int
	sent    int

	// Together has the datagrams go to the kernel as few messages, which it cuts apart, or a device does (UDP
	// generic segmentation offload): one of several that are sent so costs half of one that is sent alone. All are
	// for the peer that the socket is connected to. What reads packets below the sockets of the same machine, such
	// as captures, may see them uncut.
	Together bool
	// Refused says that the system did not do that. It would do so again, as some devices cannot cut, nor can what
	// is to be encrypted.
	Refused bool

	plan    *plan // nil if nothing ever went together
	planned bool  // the batch goes by it
}

// Add puts b, which is not empty, into the batch and returns its header, to which the address and the control
// message go if the socket needs them. There must be room, of which Batch is all.
func (o *Outgoing) Add(b []byte) *Header {
	h, v := &o.headers[o.n], &o.vecs[o.n]
	v.Base = unsafe.SliceData(b)
	v.SetLen(len(b))
	h.Iov = v
	h.SetIovlen(1)
	o.n++
	return h
}

// Len is the number of datagrams in the batch, Sent how many of them were sent, or skipped.
func (o *Outgoing) Len() int  { return o.n }
func (o *Outgoing) Sent() int { return o.sent }

// Number is which datagram, as Add counts them, is the i-th to be sent: those that go together are sorted.
func (o *Outgoing) Number(i int) int {
	if o.planned {
		return int(o.plan.order[i])
	}
	return i
}

// Datagram is what Add was given as number i, and Header what it returned.
func (o *Outgoing) Datagram(i int) []byte { return unsafe.Slice(o.vecs[i].Base, o.vecs[i].Len) }
func (o *Outgoing) Header(i int) *Header  { return &o.headers[i] }

// Send sends what was not sent before. An error is what the system says of the next one, EAGAIN that the socket
// takes no more now.
func (o *Outgoing) Send(fd uintptr) syscall.Errno {
	if o.Together && o.n > 1 && o.sent == 0 && !o.planned && canSegment() {
		o.arrange()
		o.planned = true
	}
	for o.sent < o.n {
		n, e := o.sendSome(fd)
		if e != 0 {
			return e
		}
		o.sent += n
	}
	return 0
}

func (o *Outgoing) sendSome(fd uintptr) (int, syscall.Errno) {
	if !o.planned {
		return sockcall.SendBatch(fd, o.headers[o.sent:o.n])
	}
	n, e := o.plan.send(fd)
	switch e {
	case 0, unix.EAGAIN, unix.ECONNREFUSED: // the last is about an earlier datagram
		return n, e
	}
	if o.plan.together() {
		o.Refused = true
		o.plan.alone(o)
		return 0, 0
	}
	o.Refused = false // what goes alone is refused, too, such as where there is no way
	return n, e
}

// Skip leaves the next one out.
func (o *Outgoing) Skip() {
	if o.planned {
		if o.plan.together() {
			o.plan.alone(o)
		}
		o.plan.sent++
	}
	o.sent++
}

// Clear makes the batch an empty one.
func (o *Outgoing) Clear() {
	clear(o.vecs[:o.n])
	if o.planned {
		clear(o.plan.vecs[:o.n])
	}
	o.n, o.sent, o.planned, o.Refused = 0, 0, false, false
}
