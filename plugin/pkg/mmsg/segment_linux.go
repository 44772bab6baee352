package mmsg

import (
	"encoding/binary"
	"sync"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/sockcall"
	"golang.org/x/sys/unix"
)

// longestSegment is how long datagrams may be that go together. Linux believes in no path MTU below 552 octets, so
// what is cut into these fits any.
const longestSegment = 500

// segmentControl is room for the control message that says how long the datagrams are. It begins where a number may
// lie: of octets alone, the compiler would put it anywhere, and some processors (MIPS, old ARM) write no number there.
type segmentControl struct {
	_ [0]unix.Cmsghdr
	b [unix.SizeofCmsghdr + 8]byte
}

// canSegment reports whether the kernel knows UDP_SEGMENT, as Linux does since 4.18. One that does not, or what stands
// in for one, would send a message uncut: so it has to show that it cuts one.
var canSegment = sync.OnceValue(func() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if _, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT); err != nil {
		return false
	}
	if unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}) != nil {
		return false
	}
	self, err := unix.Getsockname(fd)
	if err != nil || unix.Connect(fd, self) != nil { // so that nobody else is heard
		return false
	}
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
	var control segmentControl
	if unix.Sendmsg(fd, []byte("ab"), putSegment(&control, 1), nil, 0) != nil {
		return false
	}
	var b [3]byte
	n, _, err := unix.Recvfrom(fd, b[:], 0)
	return n == 1 && err == nil
})

// putSegment makes room the control message that says how long each datagram but the last is.
func putSegment(room *segmentControl, size int) []byte {
	b := room.b[:]
	c := (*unix.Cmsghdr)(unsafe.Pointer(room))
	c.Level, c.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	c.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(b[unix.CmsgLen(0):], uint16(size))
	return b[:unix.CmsgSpace(2)]
}

// plan is how a batch for one peer is sent: which of its datagrams go together. A message is one or more datagrams.
type plan struct {
	order    [Batch]uint8      // the datagrams, by number, in the order in which they go
	vecs     [Batch]unix.Iovec // in that order
	headers  [Batch]Header     // of the messages
	sizes    [Batch]uint8      // of the messages, in datagrams
	controls [Batch]segmentControl
	messages int
	sent     int // messages
}

// arrange plans which datagrams go together: those of one length, and a shorter one behind them. So the longest go
// first.
func (o *Outgoing) arrange() {
	if o.plan == nil {
		o.plan = new(plan)
	}
	p := o.plan
	p.messages, p.sent = 0, 0
	for i := range o.n {
		at := i
		for ; at > 0 && o.vecs[p.order[at-1]].Len < o.vecs[i].Len; at-- {
			p.order[at] = p.order[at-1]
		}
		p.order[at] = uint8(i)
	}
	for from := 0; from < o.n; {
		to := from + 1
		long := o.vecs[p.order[from]].Len
		for to < o.n && long <= longestSegment && o.vecs[p.order[to-1]].Len == long {
			to++ // it is as long, or the shorter one that ends the message
		}
		p.add(o, from, to)
		from = to
	}
}

// add makes a message of the datagrams from to to, in order.
func (p *plan) add(o *Outgoing, from, to int) {
	h, n := &p.headers[p.messages], to-from
	*h = o.headers[p.order[from]]
	p.sizes[p.messages] = uint8(n)
	if n > 1 {
		for i := from; i < to; i++ {
			p.vecs[i] = o.vecs[p.order[i]]
		}
		h.Iov = &p.vecs[from]
		h.SetIovlen(n)
		control := putSegment(&p.controls[p.messages], int(p.vecs[from].Len))
		h.Control = &control[0]
		h.SetControllen(len(control))
	}
	p.messages++
}

// alone has all datagrams that were not sent go one by one, in the order that was planned.
func (p *plan) alone(o *Outgoing) {
	p.messages, p.sent = 0, 0
	for i := o.sent; i < o.n; i++ {
		p.add(o, i, i+1)
	}
}

// together reports whether the next message is more than one datagram.
func (p *plan) together() bool { return p.sizes[p.sent] > 1 }

// send sends what was not sent before, and returns how many datagrams went, until an error.
func (p *plan) send(fd uintptr) (n int, e unix.Errno) {
	m, e := sockcall.SendBatch(fd, p.headers[p.sent:p.messages])
	if e != 0 {
		return 0, e
	}
	for range m {
		n += int(p.sizes[p.sent])
		p.sent++
	}
	return n, 0
}
