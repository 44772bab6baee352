package cache

import (
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// manyEntries is how many answers a store has that is large. With 10,000 a hit takes 0.07 µs more if it is read ahead, with
// 60,000 as long, with 300,000 it takes 0.07 µs less.
const manyEntries = 100_000

// Large implements readahead.Table.
func (c *Cache) Large() bool {
	c.prepare()
	positive, negative := c.positive.isLarge(), c.negative.isLarge()
	return positive || negative
}

// isLarge tells ReadAhead, too.
func (s *store) isLarge() bool {
	many := s.len() > manyEntries
	if many != s.large.Load() {
		s.large.Store(many)
	}
	return many
}

// ReadAhead implements readahead.Table.
func (c *Cache) ReadAhead(q *wire.Query, left int, _ any) any {
	if left > 2 {
		return nil
	}
	k := c.questionOf(q)
	for _, s := range [...]*store{c.positive, c.negative} {
		if s.large.Load() {
			s.shard(k.hash).table.Load().readAhead(k.hash, left)
		}
	}
	return nil
}

// readAhead fetches the slot that a search begins at, if there is time until it begins, and else the entry that it finds.
func (t *table) readAhead(hash uint64, left int) {
	if left > 1 {
		readahead.Line(unsafe.Pointer(&t.slots[t.first(hash)]))
		return
	}
	if e := t.findHash(hash); e != nil {
		readahead.Bytes(unsafe.Slice((*byte)(unsafe.Pointer(e)), unsafe.Sizeof(*e)))
	}
}

// readAhead fetches what the next evictions from a queue look at: one entry, and the slot of another.
func (sh *shard) readAhead(q *queue) {
	if sh.live < manyEntries/shards || q.n < 4 {
		return
	}
	t := sh.table.Load()
	t.readAhead(*q.at(3), 2)
	t.readAhead(*q.at(1), 1)
}
