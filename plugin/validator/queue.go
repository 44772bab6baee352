package validator

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// places are those of the steps that are computed: as many at a time as there are processors.
var places = make(chan struct{}, runtime.GOMAXPROCS(0))

// crowded counts signatures that were computed while each processor computes.
var crowded atomic.Uint32

// checksPerPause is how many of them there are to a pause: with one the loops' batches are so small that all takes 5 %
// longer, with four hits beside wait twice as long.
const checksPerPause = 2

// pause lets those run who serve sockets, if each processor computes.
func pause() {
	if len(places) == cap(places) && crowded.Add(1)%checksPerPause == 0 {
		eventloop.Yield()
	}
}

// computed is the queue of all validators of the process.
var computed = newQueue(runtime.GOMAXPROCS(0))

// queue is checks that wait to be computed, the oldest first. Its goroutines live on, so that their stacks stay grown: to
// grow one below the arithmetic of a signature takes a tenth of the time of that.
type queue struct {
	most int // goroutines

	mu      sync.Mutex
	more    sync.Cond // a check was added, and a goroutine is idle
	waiting []*check
	workers int
	idle    int // of them, that wait and were not signalled
}

func newQueue(most int) *queue {
	all := &queue{most: most}
	all.more.L = &all.mu
	return all
}

// add has a check computed soon.
func (all *queue) add(c *check) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.waiting = append(all.waiting, c)
	switch {
	case all.idle > 0:
		all.idle--
		all.more.Signal()
	case all.workers < all.most:
		all.workers++
		go all.work()
	}
}

// next waits for a check.
func (all *queue) next() *check {
	all.mu.Lock()
	defer all.mu.Unlock()
	for len(all.waiting) == 0 {
		all.idle++
		all.more.Wait()
	}
	c := all.waiting[0]
	all.waiting[0] = nil
	if all.waiting = all.waiting[1:]; len(all.waiting) == 0 {
		all.waiting = nil
	}
	return c
}

// heldStack is the octets of its stack that an idle goroutine holds: the garbage collector would make a stack smaller of
// which less than a quarter is in use.
const heldStack = 8 << 10

// work computes, one check after the other.
func (all *queue) work() {
	var held [heldStack]byte
	for {
		all.next().compute()
		runtime.KeepAlive(&held)
	}
}
