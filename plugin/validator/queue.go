package validator

import (
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
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

// queue is checks that wait to be computed. Clients have their turns, each with its oldest check: who asks for names that
// cost much has his own names wait, and nobody else's. Its goroutines live on, so that their stacks stay grown: to grow
// one below the arithmetic of a signature takes a tenth of the time of that.
type queue struct {
	most int // goroutines

	mu      sync.Mutex
	more    sync.Cond // a check was added, and a goroutine is idle
	waiting map[netip.Addr][]*check
	turns   []netip.Addr // the clients of which checks wait
	workers int
	idle    int // of them, that wait and were not signalled
}

func newQueue(most int) *queue {
	all := &queue{most: most, waiting: map[netip.Addr][]*check{}}
	all.more.L = &all.mu
	return all
}

// add has a check computed soon.
func (all *queue) add(c *check) {
	all.mu.Lock()
	defer all.mu.Unlock()
	client := clientOf(c.peer)
	line := all.waiting[client]
	if line == nil {
		all.turns = append(all.turns, client)
	}
	all.waiting[client] = append(line, c)
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
	for len(all.turns) == 0 {
		all.idle++
		all.more.Wait()
	}
	client := all.turns[0]
	all.turns = all.turns[1:]
	line := all.waiting[client]
	c := line[0]
	line[0] = nil
	if line = line[1:]; len(line) > 0 {
		all.waiting[client] = line
		all.turns = append(all.turns, client)
	} else {
		delete(all.waiting, client)
	}
	return c
}

// clientOf is who has turns of his own: an IPv4 address, or an IPv6 /56.
func clientOf(p wire.Peer) netip.Addr {
	a := p.Client.Addr()
	if a.Is6() {
		network, _ := a.WithZone("").Prefix(56) // it is an address, so there is one
		return network.Addr()
	}
	return a
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
