package nonblock

import (
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/mmsg"
	"github.com/coredns/coredns/plugin/pkg/sockcall"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// batches are datagrams of a socket that are read several at a time. QUIC's library looks for ReadBatch. Other than
// package ipv4, this does not wait in the system even if the socket is made to block just before it is read, and does
// without recvmmsg where a sandbox refuses that.
type batches struct {
	raw syscall.RawConn

	mu      sync.Mutex // held by who reads
	look    func(fd uintptr) bool
	ms      []ipv4.Message
	n       int
	errno   syscall.Errno
	headers []sockcall.Header
	vecs    []unix.Iovec
	names   []unix.RawSockaddrInet6
}

// ReadBatch waits for datagrams, and reads what there is into the first buffers of ms.
func (b *batches) ReadBatch(ms []ipv4.Message, _ int) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.look == nil {
		b.look = func(fd uintptr) bool {
			b.n, b.errno = b.read(fd, b.ms)
			return b.errno != unix.EAGAIN
		}
	}
	b.ms, b.n, b.errno = ms, 0, 0
	err := b.raw.Read(b.look)
	if err == nil && b.errno != 0 {
		err = os.NewSyscallError("recvmmsg", b.errno)
	}
	return b.n, err
}

// read is one look.
func (b *batches) read(fd uintptr, ms []ipv4.Message) (int, syscall.Errno) {
	for len(b.headers) < len(ms) {
		b.headers = append(b.headers, sockcall.Header{})
		b.vecs, b.names = append(b.vecs, unix.Iovec{}), append(b.names, unix.RawSockaddrInet6{})
	}
	for i := range ms {
		h, v, m := &b.headers[i], &b.vecs[i], &ms[i]
		v.Base = unsafe.SliceData(m.Buffers[0])
		v.SetLen(len(m.Buffers[0]))
		h.Iov, h.Name, h.Namelen = v, (*byte)(unsafe.Pointer(&b.names[i])), unix.SizeofSockaddrInet6
		h.SetIovlen(1)
		h.Control = unsafe.SliceData(m.OOB)
		h.SetControllen(len(m.OOB))
	}
	n, e := sockcall.ReceiveBatch(fd, b.headers[:len(ms)])
	for i := range n {
		h, m := &b.headers[i], &ms[i]
		m.N, m.NN, m.Flags = int(h.N), int(h.Controllen), int(h.Flags)
		m.Addr = net.UDPAddrFromAddrPort(mmsg.AddrPort(&b.names[i]))
	}
	return n, e
}
