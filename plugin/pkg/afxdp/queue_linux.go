package afxdp

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The frames of a queue: those that datagrams come in, a burst of which waits there, and those that
// replies go out in. Together they are 6 MiB.
const (
	frameSize = 2048
	inFrames  = 2048
	outFrames = 1024
)

// A frame goes round: its address stands in one ring at a time.
//
//	fill ──kernel writes──▶ Socket.in ──Receive──▶ batch ──the next Receive──▶ fill
//	free ──Space, Answer──▶ Socket.out ──kernel sends──▶ done ──forSending──▶ free
//
// fill and done are the queue's, in and out each socket's.

// queue is one of an interface's queues, with the memory that all sockets of it share. The first
// socket holds it, and gets nothing itself.
type queue struct {
	ifindex, number int
	fd              int
	mem             []byte

	mu   sync.Mutex
	fill ring[uint64] // frames that the kernel may write to; guarded by mu
	done ring[uint64] // frames that it has sent; guarded by mu
	free []uint64     // frames to send; guarded by mu
}

// newQueue opens a queue of an interface.
func newQueue(ifindex, number int) (*queue, error) {
	q := &queue{ifindex: ifindex, number: number, fd: -1}
	if err := q.open(); err != nil {
		q.close()
		return nil, fmt.Errorf("queue %d: %w", number, err)
	}
	return q, nil
}

// open makes the memory known to the kernel, gives it the frames for what comes, and binds the
// first socket.
func (q *queue) open() (err error) {
	if q.mem, err = unix.Mmap(-1, 0, (inFrames+outFrames)*frameSize, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		return os.NewSyscallError("mmap", err)
	}
	if q.fd, err = newSocket(); err != nil {
		return err
	}
	area := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&q.mem[0]))), Len: uint64(len(q.mem)), Size: frameSize}
	if _, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(q.fd), unix.SOL_XDP, unix.XDP_UMEM_REG,
		uintptr(unsafe.Pointer(&area)), unsafe.Sizeof(area), 0); e == unix.ENOBUFS {
		return fmt.Errorf("memory that may be locked (ulimit -l) is less than %d octets: %w", len(q.mem), e)
	} else if e != 0 {
		return os.NewSyscallError("setsockopt", e)
	}
	var unused ring[unix.XDPDesc]
	defer unused.close()
	if err := errors.Join(
		q.fill.init(q.fd, unix.XDP_UMEM_FILL_RING, inFrames, unix.XDP_UMEM_PGOFF_FILL_RING,
			func(o *unix.XDPMmapOffsets) unix.XDPRingOffset { return o.Fr }),
		q.done.init(q.fd, unix.XDP_UMEM_COMPLETION_RING, outFrames, unix.XDP_UMEM_PGOFF_COMPLETION_RING,
			func(o *unix.XDPMmapOffsets) unix.XDPRingOffset { return o.Cr }),
		unused.init(q.fd, unix.XDP_RX_RING, 1, unix.XDP_PGOFF_RX_RING,
			func(o *unix.XDPMmapOffsets) unix.XDPRingOffset { return o.Rx }),
	); err != nil {
		return err
	}
	for i := range uint64(inFrames) {
		q.fill.put(i * frameSize)
	}
	q.fill.written()
	for i := range uint64(outFrames) {
		q.free = append(q.free, (inFrames+i)*frameSize)
	}
	return q.bind()
}

// The kernel takes some time until it has given a queue back whose sockets were closed.
const (
	bindTries = 200
	bindPause = 10 * time.Millisecond
)

func (q *queue) bind() (err error) {
	for range bindTries {
		err = unix.Bind(q.fd, &unix.SockaddrXDP{
			Flags: unix.XDP_USE_NEED_WAKEUP, Ifindex: uint32(q.ifindex), QueueID: uint32(q.number),
		})
		if err != unix.EBUSY {
			break
		}
		time.Sleep(bindPause)
	}
	return os.NewSyscallError("bind", err)
}

// newSocket is a socket of AF_XDP.
func newSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	return fd, os.NewSyscallError("socket", err)
}

// close ends a queue without sockets.
func (q *queue) close() {
	if q.fd >= 0 {
		unix.Close(q.fd)
	}
	q.fill.close()
	q.done.close()
	if q.mem != nil {
		unix.Munmap(q.mem)
	}
}

// beginOf is the begin of the frame that an address lies in.
func beginOf(at uint64) uint64 { return at - at%frameSize }

// frame is the memory of a frame from an address within it on.
func (q *queue) frame(at uint64) []byte {
	end := beginOf(at) + frameSize
	return q.mem[at:end:end]
}

// giveBack lets the kernel write to frames that were read, by an address in each.
func (q *queue) giveBack(frames []uint64) {
	if len(frames) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, f := range frames {
		q.fill.put(beginOf(f))
	}
	q.fill.written()
	if q.fill.sleeps() {
		unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(q.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	}
}

// forSending appends up to n frames to to, that the caller may write to and send.
func (q *queue) forSending(to []uint64, n int) []uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.free) < n {
		for q.done.filled() > 0 {
			q.free = append(q.free, beginOf(q.done.take()))
		}
		q.done.taken()
	}
	n = min(n, len(q.free))
	rest := len(q.free) - n
	to = append(to, q.free[rest:]...)
	q.free = q.free[:rest]
	return to
}

// unsent takes frames back that were not sent.
func (q *queue) unsent(frames []uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free = append(q.free, frames...)
}
