package hosts

import (
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Large implements readahead.Table.
func (h Hosts) Large() bool {
	t := h.file.Load()
	return t != nil && t.size() > readahead.LargeSize
}

// ReadAhead implements readahead.Table. Names of wildcards, and addresses, are not read ahead.
func (h Hosts) ReadAhead(q *wire.Query, left int, _ any) any {
	t, typ := h.file.Load(), q.Type()
	if left <= 2 && t != nil && t.entries > 0 && (typ == wire.TypeA || typ == wire.TypeAAAA) {
		t.readAhead(q.Hash(), typ == wire.TypeAAAA, left)
	}
	return nil
}

// entryAhead is the octets of an entry that are read ahead: all of most.
const entryAhead = 64

// readAhead fetches the slot that a search begins at, if there is time until it begins, and else the entry that it finds.
func (t *table) readAhead(hash uint64, is6 bool, left int) {
	if left > 1 {
		slot, _ := t.first(keyOf(hash, is6))
		readahead.Line(unsafe.Pointer(&t.slots[slot]))
		return
	}
	if e := t.candidate(hash, is6); e != nil {
		readahead.Bytes(e[:min(len(e), entryAhead)])
	}
}

// candidate is the first entry that a search looks at, nil if it looks at none.
func (t *table) candidate(hash uint64, is6 bool) entry {
	slot, tag := t.first(keyOf(hash, is6))
	mask := uint32(1)<<t.width - 1
	for t.slots[slot] != 0 {
		if s := t.slots[slot]; s&^mask == tag {
			return t.at(s&mask - 1)
		}
		if slot++; slot == uint64(len(t.slots)) {
			slot = 0
		}
	}
	return nil
}
