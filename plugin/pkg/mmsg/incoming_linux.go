package mmsg

import (
	"syscall"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/sockcall"
	"golang.org/x/sys/unix"
)

// Incoming is memory for a batch of datagrams that are received. What most have lies near together, so that the
// processor's caches hold it; the rest of a long one is read into pages that are touched for nothing else.
type Incoming struct {
	headers  [Batch]Header
	vecs     [Batch][2]unix.Iovec
	near     []byte
	rest     []byte
	mapped   []byte // rest, if it is
	long     []byte // a datagram that does not lie in one piece
	nearSize int
	restSize int

	names    []unix.RawSockaddrInet6
	controls [][ControlSpace]byte
}

// ControlSpace is the room for a packet's control message with an address; IPv6's is the longer.
const ControlSpace = unix.SizeofCmsghdr + (unix.SizeofInet6Pktinfo+7)&^7

// NewIncoming makes memory for datagrams of up to most octets, of which the first near lie together; that is best
// no power of two, or the begins of all would share cache lines.
func NewIncoming(near, most int) *Incoming {
	in := &Incoming{nearSize: near, restSize: most - near, near: make([]byte, Batch*near)}
	var err error
	in.mapped, err = unix.Mmap(-1, 0, Batch*in.restSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if in.rest = in.mapped; err != nil { // such as for a limit of mappings
		in.rest = make([]byte, Batch*in.restSize)
	}
	for i := range in.headers {
		v := &in.vecs[i]
		v[0].Base, v[1].Base = &in.near[i*near], &in.rest[i*in.restSize]
		v[0].SetLen(near)
		v[1].SetLen(in.restSize)
		in.headers[i].Iov = &v[0]
		in.headers[i].SetIovlen(len(v))
	}
	return in
}

// WithNames makes it note who sent each datagram, WithControls its control message.
func (in *Incoming) WithNames() {
	in.names = make([]unix.RawSockaddrInet6, Batch)
	for i := range in.headers {
		in.headers[i].Name = (*byte)(unsafe.Pointer(&in.names[i]))
	}
}

func (in *Incoming) WithControls() {
	in.controls = make([][ControlSpace]byte, Batch)
	for i := range in.headers {
		in.headers[i].Control = &in.controls[i][0]
	}
}

// Close gives the memory back.
func (in *Incoming) Close() error {
	mapped := in.mapped
	if in.rest, in.mapped = nil, nil; mapped == nil {
		return nil
	}
	return unix.Munmap(mapped)
}

// Receive reads what the socket has, a batch at most. The error is EAGAIN if it has nothing, else what the system
// says of the socket.
func (in *Incoming) Receive(fd uintptr) (n int, e syscall.Errno) {
	for i := range in.headers {
		if in.names != nil {
			in.headers[i].Namelen = unix.SizeofSockaddrInet6
		}
		if in.controls != nil {
			in.headers[i].SetControllen(ControlSpace)
		}
	}
	return sockcall.ReceiveBatch(fd, in.headers[:])
}

// Datagram is what was received as number i. It is good until the next Receive, a long one until the next call of
// Datagram, and may be changed.
func (in *Incoming) Datagram(i int) []byte {
	n := int(in.headers[i].N)
	if n <= in.nearSize {
		return in.near[i*in.nearSize:][:n:in.nearSize]
	}
	in.long = append(in.long[:0], in.near[i*in.nearSize:][:in.nearSize]...)
	in.long = append(in.long, in.rest[i*in.restSize:][:n-in.nearSize]...)
	return in.long
}

// Name is the sender of datagram i, in memory that a reply's header may point to.
func (in *Incoming) Name(i int) (name *unix.RawSockaddrInet6, length uint32) {
	return &in.names[i], in.headers[i].Namelen
}

// Control is the control message of datagram i, nil if none was asked for.
func (in *Incoming) Control(i int) []byte {
	if in.controls == nil {
		return nil
	}
	return in.controls[i][:in.headers[i].Controllen]
}
