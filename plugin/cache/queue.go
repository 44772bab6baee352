package cache

import "math/bits"

// queue is first in, first out, in a ring. It holds hashes, so an entry that goes is left to be skipped when its turn comes.
type queue struct {
	ring []uint64 // a power of two, or none
	head int      // of the oldest
	n    int
}

func (q *queue) push(hash uint64) {
	if q.n == len(q.ring) {
		ring := make([]uint64, max(16, 2*len(q.ring)))
		for i := range q.n {
			ring[i] = *q.at(i)
		}
		q.ring, q.head = ring, 0
	}
	*q.at(q.n) = hash
	q.n++
}

// pop is the oldest hash; it reports false if there is none.
func (q *queue) pop() (hash uint64, ok bool) {
	if q.n == 0 {
		return 0, false
	}
	hash = *q.at(0)
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return hash, true
}

// at is the place of the i-th oldest.
func (q *queue) at(i int) *uint64 { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

// tidy keeps the hashes that keep says, in a ring that is as long as they need.
func (q *queue) tidy(keep func(hash uint64) bool) {
	var fresh queue
	for i := range q.n {
		if hash := *q.at(i); keep(hash) {
			fresh.push(hash)
		}
	}
	*q = fresh
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
