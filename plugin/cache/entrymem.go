package cache

import (
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// An entry and what is packed for it are one block of memory, unless that is large. There may be millions: each block
// costs an allocation, and a mark by the collector in each of its cycles.

// packedEntry is an entry with the reply that w holds, as an answer to k.
func packedEntry(w *wire.Reply, k *question) *entry {
	var e *entry
	packed := w.PackIn(k.name, func(n int) (room []byte) {
		e, room = newEntry(n)
		return room
	})
	e.hash, e.about, e.packed = k.hash, k.about, packed
	return e
}

// maxRoom is what is packed beside an entry at most.
const maxRoom = 272

// newEntry is a new entry, and n octets of memory for what is packed.
func newEntry(n int) (*entry, []byte) {
	switch {
	case n <= 32:
		return entryWith[[32]byte]()
	case n <= 48:
		return entryWith[[48]byte]()
	case n <= 64:
		return entryWith[[64]byte]()
	case n <= 80:
		return entryWith[[80]byte]()
	case n <= 96:
		return entryWith[[96]byte]()
	case n <= 112:
		return entryWith[[112]byte]()
	case n <= 144:
		return entryWith[[144]byte]()
	case n <= 208:
		return entryWith[[208]byte]()
	case n <= maxRoom:
		return entryWith[[maxRoom]byte]()
	}
	return new(entry), make([]byte, n)
}

// entryWith is an entry with an array of octets behind it.
func entryWith[array any]() (*entry, []byte) {
	e := new(struct {
		entry
		room array
	})
	return &e.entry, unsafe.Slice((*byte)(unsafe.Pointer(&e.room)), unsafe.Sizeof(e.room))
}

// entryBlocks is the octets that the allocator takes for an entry with room for so much that is packed.
func entryBlocks(packed uintptr) int64 {
	const size = unsafe.Sizeof(entry{})
	if packed > maxRoom {
		return block(size) + block(packed)
	}
	return block(size + packed)
}
