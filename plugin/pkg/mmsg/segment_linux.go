package mmsg

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// longestSegment is how long datagrams may be that go together. Linux believes in no path MTU below 552 octets, so what is cut
// into these fits any.
const longestSegment = 500

// segmentSpace is the length of the control message that says how long the datagrams are.
var segmentSpace = unix.CmsgSpace(2)

// canSegment reports whether the kernel knows UDP_SEGMENT, as Linux does since 4.18: one that does not would send a message
// uncut.
var canSegment = sync.OnceValue(func() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	_, err = unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
	return err == nil
})

// Segments reports whether datagrams for addr may go together.
func Segments(addr netip.Addr) bool {
	return Segmentation(inForce.Load()).covers(addr) && canSegment()
}

// covers reports whether datagrams for addr may go together.
func (s Segmentation) covers(addr netip.Addr) bool {
	return s == SegmentAll || s == SegmentLoopback && addr.Unmap().IsLoopback()
}

// plan is how a batch is sent: which of its datagrams go together. A message is one or more datagrams.
type plan struct {
	order    [Batch]uint8      // the datagrams, by number, in the order in which they go
	vecs     [Batch]unix.Iovec // in that order
	count    int
	headers  [Batch]Header // of the messages
	sizes    [Batch]uint8  // of the messages, in datagrams
	controls [Batch][unix.SizeofCmsghdr + 8 + ControlSpace]byte
	messages int
	sent     int // messages
}

// arrange plans which datagrams go together, and reports false if none do.
func (o *Outgoing) arrange() bool {
	var a addressees
	if !a.find(o) {
		return false
	}
	if o.plan == nil {
		o.plan = new(plan)
	}
	p := o.plan
	p.count, p.messages, p.sent = 0, 0, 0
	for i := range o.n {
		if !a.later[i] {
			p.addAll(o, &a, i)
		}
	}
	return true
}

// placeBits is the bits of the number of a place of an address. There are twice as many places as datagrams.
const (
	placeBits = 7
	places    = 1 << placeBits
)

var _ [places - 2*Batch]struct{} // does not compile if there are fewer

// addressees are lists of the datagrams that go to the same address.
type addressees struct {
	next  [Batch]uint8 // after a datagram; 0 for the last one
	later [Batch]bool  // it is not the first one of its list
}

// find fills a, and reports false if all lists are of one.
func (a *addressees) find(o *Outgoing) (found bool) {
	var first, last [places]uint8 // of the lists, by their addresses' hash; number + 1
	s := Segmentation(inForce.Load())
	if s == SegmentOff {
		return false
	}
	for i := range o.n {
		if o.vecs[i].Len > longestSegment || !o.segments(i, s) {
			continue
		}
		at := o.hash(i)
		for first[at] != 0 && !o.alike(int(first[at])-1, i) {
			at = (at + 1) % places
		}
		if first[at] == 0 {
			first[at] = uint8(i + 1)
		} else {
			a.next[last[at]-1] = uint8(i)
			a.later[i], found = true, true
		}
		last[at] = uint8(i + 1)
	}
	return found
}

// segments reports whether datagram i may go with others.
func (o *Outgoing) segments(i int, s Segmentation) bool {
	name := o.headers[i].Name
	if name == nil {
		return o.Segment
	}
	if (*unix.RawSockaddr)(unsafe.Pointer(name)).Family == unix.AF_INET { // as covers has it, in half of the time
		return s == SegmentAll || (*unix.RawSockaddrInet4)(unsafe.Pointer(name)).Addr[0] == 127
	}
	return s.covers(netip.AddrFrom16((*unix.RawSockaddrInet6)(unsafe.Pointer(name)).Addr))
}

// hash is a place for where datagram i goes.
func (o *Outgoing) hash(i int) int {
	name := o.headers[i].Name
	if name == nil {
		return 0
	}
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	return int(*(*uint64)(unsafe.Pointer(name)) * golden >> (64 - placeBits))
}

// alike reports whether datagrams i and j go to the same address, from the same one of ours.
func (o *Outgoing) alike(i, j int) bool {
	a, b := &o.headers[i], &o.headers[j]
	return bytes.Equal(unsafe.Slice(a.Name, a.Namelen), unsafe.Slice(b.Name, b.Namelen)) &&
		bytes.Equal(unsafe.Slice(a.Control, a.Controllen), unsafe.Slice(b.Control, b.Controllen))
}

// addAll plans datagram i and those for the same address: the longest first, as only the last one of a message may be
// shorter.
func (p *plan) addAll(o *Outgoing, a *addressees, i int) {
	from := p.count
	for {
		at := p.count
		for ; at > from && o.vecs[p.order[at-1]].Len < o.vecs[i].Len; at-- {
			p.order[at] = p.order[at-1]
		}
		p.order[at] = uint8(i)
		p.count++
		if a.next[i] == 0 {
			break
		}
		i = int(a.next[i])
	}
	for from < p.count {
		to := from + 1
		for to < p.count {
			to++
			if o.vecs[p.order[to-1]].Len < o.vecs[p.order[from]].Len {
				break
			}
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
		control := p.controls[p.messages][:]
		c := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		c.Level, c.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
		c.SetLen(unix.CmsgLen(2))
		binary.NativeEndian.PutUint16(control[unix.CmsgLen(0):], uint16(p.vecs[from].Len))
		length := segmentSpace + copy(control[segmentSpace:], unsafe.Slice(h.Control, h.Controllen))
		h.Control = &control[0]
		h.SetControllen(length)
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
	m, e := send(fd, p.headers[p.sent:p.messages])
	if e != 0 {
		return 0, e
	}
	for range m {
		n += int(p.sizes[p.sent])
		p.sent++
	}
	return n, 0
}

func (p *plan) clear() { clear(p.vecs[:p.count]) }
