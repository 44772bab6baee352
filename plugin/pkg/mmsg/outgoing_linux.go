package mmsg

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Outgoing is a batch of datagrams to be sent, from memory that others own until then. The zero value is an empty one. It must not be
// copied, and one goroutine at a time may use it.
type Outgoing struct {
	headers [Batch]Header
	vecs    [Batch]unix.Iovec
	n       int
	sent    int
}

// Add puts b, which is not empty, into the batch and returns its header, to which the address and the control message go if the
// socket needs them. There must be room, of which Batch is all.
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

// Datagram is what Add was given as number i, and Header what it returned.
func (o *Outgoing) Datagram(i int) []byte { return unsafe.Slice(o.vecs[i].Base, o.vecs[i].Len) }
func (o *Outgoing) Header(i int) *Header  { return &o.headers[i] }

// Send sends what was not sent before. An error is what the system says of the next one, EAGAIN that the socket takes no
// more now.
func (o *Outgoing) Send(fd uintptr) syscall.Errno {
	for o.sent < o.n {
		n, e := send(fd, o.headers[o.sent:o.n])
		if e != 0 {
			return e
		}
		o.sent += n
	}
	return 0
}

// Skip leaves the next one out.
func (o *Outgoing) Skip() { o.sent++ }

// Clear makes the batch an empty one.
func (o *Outgoing) Clear() {
	for i := range o.n {
		o.vecs[i].Base = nil
	}
	o.n, o.sent = 0, 0
}
