package udp

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/mmsg"

	"golang.org/x/sys/unix"
)

// sendQueue gathers the replies of a socket that are not sent by its loop, because their queries have waited: those
// of one batch of upstream replies, or of the workers that are done at about the same time, go out by one system
// call.
//
// Who puts the first reply into an empty sendQueue sees to it that it is sent; what others add until then goes with it.
type sendQueue struct {
	is4 bool // the socket's family is IPv4

	sendMu sync.Mutex
	going  *sendBatch // empty, but while it is sent; guarded by sendMu

	mu        sync.Mutex  // never held while sendMu is awaited
	filling   *sendBatch  // guarded by mu
	holding   bool        // sendHeld will be called; guarded by mu
	gathering bool        // all replies in filling wait for a flush; guarded by mu
	batches   uint64      // that were sent; guarded by mu
	timer     *time.Timer // calls tick; nil until it is needed; guarded by mu
	timed     bool        // it will; guarded by mu
	seen      uint64      // batches at the last tick; guarded by mu
}

// sendBatch is the replies of one sendmmsg, with their memory.
type sendBatch struct {
	outgoing
	bytes    []byte
	ends     [batchSize]int // of each reply, in bytes
	names    [batchSize]unix.RawSockaddrInet6
	lens     [batchSize]uint32 // of names
	controls [batchSize][mmsg.ControlSpace]byte
	controln [batchSize]int
	count    int
}

// A sendBatch that was longer than mostKept octets does not keep its memory.
const mostKept = 64 << 10

func newSendQueue(raw syscall.RawConn, is4 bool) *sendQueue {
	q := &sendQueue{is4: is4, going: new(sendBatch), filling: new(sendBatch)}
	q.going.init(raw)
	q.filling.init(raw)
	return q
}

// hold leaves what is added from now on to sendHeld, unless that is more than a batch.
func (q *sendQueue) hold() {
	q.mu.Lock()
	q.holding = true
	q.mu.Unlock()
}

func (q *sendQueue) sendHeld() {
	q.mu.Lock()
	q.holding = false
	some := q.filling.count > 0
	q.mu.Unlock()
	if some {
		q.Send()
	}
}

// gatherTime is how long a reply waits at least, and half of how long it waits at most, until the handler that has
// written it returns. Tests change it.
var gatherTime = time.Millisecond

// later adds a reply that is sent by the next flush, by whatever else sends, or by the timer.
func (q *sendQueue) later(b, control []byte, to netip.AddrPort, link uint32) {
	if !q.add(b, control, to, link, true) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.timed:
		return
	case q.timer == nil:
		q.timer = time.AfterFunc(gatherTime, q.tick)
	default:
		q.timer.Reset(gatherTime)
	}
	q.timed = true
}

// tick sends what was there at the tick before, if nobody else has. So a timer serves many replies: setting it for each
// one, and stopping it, costs a tenth of the query.
func (q *sendQueue) tick() {
	q.mu.Lock()
	old := q.filling.count > 0 && q.seen == q.batches
	q.seen = q.batches
	if q.timed = q.filling.count > 0 && !old; q.timed {
		q.timer.Reset(gatherTime)
	}
	q.mu.Unlock()
	if old {
		q.Send()
	}
}

// flush sends what there is. Who flushes has no reply of his own, perhaps.
func (q *sendQueue) flush() {
	q.mu.Lock()
	some := q.filling.count > 0 && !q.holding
	q.mu.Unlock()
	if some {
		// One turn of the scheduler: other workers that are done put their replies into the same batch.
		runtime.Gosched()
		q.Send()
	}
}

// add adds a reply, whose memory is not kept, and reports whether it is the first one, that nobody else will send:
// then the caller sends, soon. Replies that may go out later count only among themselves, as who has added one takes
// his time.
func (q *sendQueue) add(b, control []byte, to netip.AddrPort, link uint32, later bool) (first bool) {
	for {
		q.mu.Lock()
		if f := q.filling; f.count < batchSize {
			f.add(b, control, to, link, q.is4)
			first = !q.holding && (f.count == 1 || q.gathering && !later)
			q.gathering = later && (f.count == 1 || q.gathering)
			q.mu.Unlock()
			return first
		}
		q.mu.Unlock()
		q.Send()
	}
}

// Send sends what there is. It implements eventloop.Sender.
func (q *sendQueue) Send() {
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	q.mu.Lock()
	// While one goes out, the other is filled: who adds never waits for the socket, unless a whole batch has come
	// meanwhile.
	q.going, q.filling = q.filling, q.going
	q.gathering = false
	q.batches++
	q.mu.Unlock()
	q.going.sendAll()
}

// queue adds a reply that is sent when the batch of loop is over; without one, when those have run that can do so
// now: they may have replies, too.
func (q *sendQueue) queue(b, control []byte, to netip.AddrPort, link uint32, loop *eventloop.Loop) {
	switch first := q.add(b, control, to, link, false); {
	case !first:
	case loop != nil:
		loop.SendLater(q)
	default:
		// One turn of the scheduler: other workers that are done put their replies into the same batch.
		runtime.Gosched()
		q.Send()
	}
}

func (m *sendBatch) add(b, control []byte, to netip.AddrPort, link uint32, is4 bool) {
	i := m.count
	m.bytes = append(m.bytes, b...)
	m.ends[i] = len(m.bytes)
	m.lens[i] = putSockaddr(&m.names[i], to, link, is4)
	m.controln[i] = copy(m.controls[i][:], control)
	m.count++
}

func (m *sendBatch) sendAll() {
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

// putSockaddr writes an address as the kernel wants it for a socket of the IPv4 family, or of IPv6, and returns its
// length. link is the interface that it has its meaning on; 0 for none.
func putSockaddr(name *unix.RawSockaddrInet6, to netip.AddrPort, link uint32, is4 bool) uint32 {
	if is4 {
		in4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		*in4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: to.Addr().Unmap().As4()}
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&in4.Port))[:], to.Port())
		return unix.SizeofSockaddrInet4
	}
	*name = unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: to.Addr().As16(), Scope_id: link}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&name.Port))[:], to.Port())
	return unix.SizeofSockaddrInet6
}
