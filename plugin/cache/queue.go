package cache

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

// ghosts remembers the hashes of the last entries that left the small queue.
type ghosts struct {
	times map[uint64]uint8 // how often a hash stands in ring
	ring  []uint64
}

// add remembers hash, and forgets the oldest ones if there are more than limit.
func (g *ghosts) add(hash uint64, limit int) {
	if g.times == nil {
		g.times = map[uint64]uint8{}
	}
	for len(g.ring) >= max(limit, 16) {
		g.forget(g.ring[0])
		g.ring = g.ring[1:]
	}
	if g.times[hash] < 255 {
		g.times[hash]++
		g.ring = append(g.ring, hash)
	}
}

func (g *ghosts) forget(hash uint64) {
	switch n := g.times[hash]; n {
	case 0:
	case 1:
		delete(g.times, hash)
	default:
		g.times[hash] = n - 1
	}
}

// take reports whether hash is remembered, and forgets it.
func (g *ghosts) take(hash uint64) bool {
	_, ok := g.times[hash]
	delete(g.times, hash)
	return ok
}
