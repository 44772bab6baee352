package afxdp

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is a queue that we share with the kernel: one side writes entries and moves producer, the
// other one reads them and moves consumer. Both count without end; entries are a power of two.
type ring[T any] struct {
	mem                []byte
	producer, consumer *uint32
	flags              *uint32
	entries            []T
	at                 uint32 // our own counter: entries that we have written, or read
	seen               uint32 // the other side's, when we looked last: each look may cost a miss of the cache
}

// init maps a ring of a socket, that was asked for by a socket option.
func (r *ring[T]) init(fd, option int, entries int, page int64, where func(*unix.XDPMmapOffsets) unix.XDPRingOffset) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_XDP, option, entries); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	var offsets unix.XDPMmapOffsets
	size := uint32(unsafe.Sizeof(offsets))
	if _, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS,
		uintptr(unsafe.Pointer(&offsets)), uintptr(unsafe.Pointer(&size)), 0); e != 0 {
		return os.NewSyscallError("getsockopt", e)
	}
	o := where(&offsets)
	var entry T
	length := int(o.Desc) + entries*int(unsafe.Sizeof(entry))
	mem, err := unix.Mmap(fd, page, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	r.mem = mem
	r.producer = (*uint32)(unsafe.Pointer(&mem[o.Producer]))
	r.consumer = (*uint32)(unsafe.Pointer(&mem[o.Consumer]))
	r.flags = (*uint32)(unsafe.Pointer(&mem[o.Flags]))
	r.entries = unsafe.Slice((*T)(unsafe.Pointer(&mem[o.Desc])), entries)
	return nil
}

// close gives the memory back. The socket may be closed before or after.
func (r *ring[T]) close() {
	if r.mem != nil {
		unix.Munmap(r.mem)
		*r = ring[T]{}
	}
}

// entry is the one that counter n says.
func (r *ring[T]) entry(n uint32) *T { return &r.entries[n&uint32(len(r.entries)-1)] }

// filled is how many entries the kernel has written that we have not read.
func (r *ring[T]) filled() int {
	if r.seen == r.at {
		r.seen = atomic.LoadUint32(r.producer)
	}
	return int(r.seen - r.at)
}

// take reads the next of the filled entries; taken gives back to the kernel those that were read.
func (r *ring[T]) take() T {
	v := *r.entry(r.at)
	r.at++
	return v
}

func (r *ring[T]) taken() { atomic.StoreUint32(r.consumer, r.at) }

// room is how many entries we may write.
func (r *ring[T]) room() int {
	if int(r.at-r.seen) == len(r.entries) {
		r.seen = atomic.LoadUint32(r.consumer)
	}
	return len(r.entries) - int(r.at-r.seen)
}

// put writes an entry into the room; written shows the kernel those that were put.
func (r *ring[T]) put(v T) {
	*r.entry(r.at) = v
	r.at++
}

func (r *ring[T]) written() { atomic.StoreUint32(r.producer, r.at) }

// left reports whether the kernel has still to read entries that were written.
func (r *ring[T]) left() bool { return atomic.LoadUint32(r.consumer) != r.at }

// sleeps reports whether the kernel goes on with the ring only if it is told to.
func (r *ring[T]) sleeps() bool { return atomic.LoadUint32(r.flags)&unix.XDP_RING_NEED_WAKEUP != 0 }
