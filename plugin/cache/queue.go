package cache

import "math/bits"

// queue is first in, first out, and lets an entry go from its midst. The entries are
// its links, so each is in one queue at most.
type queue struct {
	first, last *entry
	n           int
}

func (q *queue) push(e *entry) {
	e.queue, e.prev, e.next = q, q.last, nil
	if q.last == nil {
		q.first = e
	} else {
		q.last.next = e
	}
	q.last = e
	q.n++
}

func (q *queue) remove(e *entry) {
	if e.prev == nil {
		q.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		q.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.queue, e.prev, e.next = nil, nil, nil
	q.n--
}

// pop is the oldest entry, nil if there is none.
func (q *queue) pop() *entry {
	e := q.first
	if e != nil {
		q.remove(e)
	}
	return e
}

// replace puts e into the place of old.
func (q *queue) replace(old, e *entry) {
	e.queue, e.prev, e.next = q, old.prev, old.next
	if e.prev == nil {
		q.first = e
	} else {
		e.prev.next = e
	}
	if e.next == nil {
		q.last = e
	} else {
		e.next.prev = e
	}
	old.queue, old.prev, old.next = nil, nil, nil
}

// ghosts remembers hashes of entries that left the small queue, by a part of them, each in the one place that it can have. A later one may
// take that: about as many are known as there are places, the last ones mostly. It may take one hash for another.
type ghosts []uint32

// place is where a hash is remembered, and the part that is. The low bits chose the shard.
func (g ghosts) place(hash uint64) (at *uint32, part uint32) {
	return &g[int(hash/shards)&(len(g)-1)], uint32(hash>>32) | 1
}

// add remembers hash among about as many as limit.
func (g *ghosts) add(hash uint64, limit int) {
	if n := len(*g); n < 16 || n < limit {
		*g = make(ghosts, nextPower(max(limit, 16)))
	}
	at, part := g.place(hash)
	*at = part
}

// take reports whether hash is remembered, and forgets it.
func (g ghosts) take(hash uint64) bool {
	if len(g) == 0 {
		return false
	}
	at, part := g.place(hash)
	if *at != part {
		return false
	}
	*at = 0
	return true
}

// nextPower is the least power of two that is not less than n.
func nextPower(n int) int { return 1 << bits.Len(uint(n-1)) }
