package dnsserver

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/mmsg"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"golang.org/x/sys/unix"
)

// outbox gathers the replies of a socket that are not sent by its loop, because their queries have waited: those of one
// batch of upstream replies, or of the workers that are done at about the same time, go out by one system call.
//
// Who puts the first reply into an empty outbox sees to it that it is sent; what others add until then goes with it.
type outbox struct {
	sendMu sync.Mutex
	going  *mailbag // empty, but while it is sent; guarded by sendMu

	mu         sync.Mutex // never held while sendMu is awaited
	filling    *mailbag   // guarded by mu
	collecting bool       // sendCollected will be called; guarded by mu
}

// mailbag is the replies of one sendmmsg, with their memory.
type mailbag struct {
	outgoing
	bytes    []byte
	ends     [batchSize]int // of each reply, in bytes
	names    [batchSize]unix.RawSockaddrInet6
	lens     [batchSize]uint32 // of names
	controls [batchSize][mmsg.ControlSpace]byte
	controln [batchSize]int
	count    int
}

// A mailbag that was longer than mostKept octets does not keep its memory.
const mostKept = 64 << 10

func newOutbox(raw syscall.RawConn) *outbox {
	o := &outbox{going: new(mailbag), filling: new(mailbag)}
	o.going.init(raw)
	o.filling.init(raw)
	return o
}

// collect leaves what is put from now on to sendCollected, unless that is more than a batch.
func (o *outbox) collect() {
	o.mu.Lock()
	o.collecting = true
	o.mu.Unlock()
}

func (o *outbox) sendCollected() {
	o.mu.Lock()
	o.collecting = false
	some := o.filling.count > 0
	o.mu.Unlock()
	if some {
		o.Send()
	}
}

// put adds a reply, whose memory is not kept, and reports whether it is the first one, that nobody else will send: then the caller sends, soon.
func (o *outbox) put(b, control []byte, to netip.AddrPort, is4 bool) (first bool) {
	for {
		o.mu.Lock()
		if bag := o.filling; bag.count < batchSize {
			bag.put(b, control, to, is4)
			first = bag.count == 1 && !o.collecting
			o.mu.Unlock()
			return first
		}
		o.mu.Unlock()
		o.Send()
	}
}

// Send sends what there is. It implements wire.Sender.
func (o *outbox) Send() {
	o.sendMu.Lock()
	defer o.sendMu.Unlock()
	o.mu.Lock()
	o.going, o.filling = o.filling, o.going
	o.mu.Unlock()
	o.going.sendAll()
}

// post puts a reply that is sent when the batch of lane is over; without a lane, when those have run that can do so now: they
// may have replies, too.
func (o *outbox) post(b, control []byte, to netip.AddrPort, is4 bool, lane *wire.Lane) {
	switch first := o.put(b, control, to, is4); {
	case !first:
	case lane != nil:
		lane.SendLater(o)
	default:
		runtime.Gosched()
		o.Send()
	}
}

func (m *mailbag) put(b, control []byte, to netip.AddrPort, is4 bool) {
	i := m.count
	m.bytes = append(m.bytes, b...)
	m.ends[i] = len(m.bytes)
	m.lens[i] = putSockaddr(&m.names[i], to, is4)
	m.controln[i] = copy(m.controls[i][:], control)
	m.count++
}

func (m *mailbag) sendAll() {
	if m.count == 0 {
		return
	}
	begin := 0
	for i := range m.count {
		h := m.Add(m.bytes[begin:m.ends[i]])
		begin = m.ends[i]
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&m.names[i])), m.lens[i]
		h.Control = nil
		if m.controln[i] > 0 {
			h.Control = &m.controls[i][0]
		}
		h.SetControllen(m.controln[i])
	}
	m.send()
	m.Clear()
	m.count, m.bytes = 0, m.bytes[:0]
	if cap(m.bytes) > mostKept {
		m.bytes = nil
	}
}

// putSockaddr writes an address without a zone as the kernel wants it for a socket of the IPv4 family, or of IPv6, and returns
// its length.
func putSockaddr(name *unix.RawSockaddrInet6, to netip.AddrPort, is4 bool) uint32 {
	if is4 {
		in4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		*in4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: to.Addr().Unmap().As4()}
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&in4.Port))[:], to.Port())
		return unix.SizeofSockaddrInet4
	}
	*name = unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: to.Addr().As16()}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&name.Port))[:], to.Port())
	return unix.SizeofSockaddrInet6
}
