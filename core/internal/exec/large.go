package exec

import "sync"

// A query that waits has a place, which stands for so many octets of memory (memory.PerWaiter). One that is as long as
// some updates are takes fifteen times as much, once it is a message. So those that have largeFrom octets or more need
// places of their own beside that, one for so many octets: there is a part largeShare of all.
const (
	largeFrom  = 4 << 10
	largeShare = 4
)

// large are the places for such queries, of all servers of the process.
var large largePlaces

// largePlaces are places for them, of which some are taken.
type largePlaces struct {
	mu    sync.Mutex
	taken int
	queue []*wanting // the first that came is the first to go on
}

// wanting waits for n places.
type wanting struct {
	n    int
	have chan struct{}
}

// placesOf is how many places a query of so many octets takes; 0 if it is not large.
func placesOf(octets int) int { return octets / largeFrom }

// full reports whether n more are not there. For a query that is alone they always are. mu is held.
func (l *largePlaces) full(n int) bool {
	return l.taken > 0 && int64(l.taken+n) > pool().most.Load()/largeShare
}

// take takes n places, or reports false if they are not there, or others wait for some.
func (l *largePlaces) take(n int) bool {
	if n == 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 || l.full(n) {
		return false
	}
	l.taken += n
	return true
}

// wait takes n places when they are there. One that needs many has its turn before those that came later.
func (l *largePlaces) wait(n int) {
	if l.take(n) {
		return
	}
	w := wanting{n, make(chan struct{})}
	l.mu.Lock()
	l.queue = append(l.queue, &w)
	l.next()
	l.mu.Unlock()
	<-w.have
}

// give gives n places back.
func (l *largePlaces) give(n int) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken -= n
	l.next()
}

// next lets those go on that wait, as far as there are places. mu is held.
func (l *largePlaces) next() {
	for len(l.queue) > 0 && !l.full(l.queue[0].n) {
		w := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.taken += w.n
		close(w.have)
	}
}
