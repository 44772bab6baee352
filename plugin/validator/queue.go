package validator

import (
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
)

// computing is how many steps are computed now.
var computing atomic.Int32

// crowded counts signatures that were computed while each processor computes.
var crowded atomic.Uint32

// checksPerPause is how many of them there are to a pause: with one the loops' batches are so small that all takes 5 %
// longer, with four hits beside wait twice as long.
const checksPerPause = 2

// pause lets those run who serve sockets, if each processor computes.
func pause() {
	if int(computing.Load()) >= computed.most && crowded.Add(1)%checksPerPause == 0 {
		eventloop.Yield()
	}
}

// computed is the queue of all validators of the process.
var computed = newQueue(runtime.GOMAXPROCS(0))

// queue is steps that wait to be computed. Every other one is by turns of the clients, each with his oldest: who asks for
// names that cost much has his own names wait, and nobody else's. The others are by turns of the zones asked about, see
// domains: whoever has many clients ask about one of his has just that one wait. Its goroutines live on, so that their
// stacks stay grown: to grow one below the arithmetic of a signature takes a tenth of the time of that.
type queue struct {
	most int // goroutines

	mu      sync.Mutex
	more    sync.Cond // a step was added, and a goroutine is idle
	left    int       // steps that wait
	clients turns[netip.Addr]
	zones   domains
	byZone  bool // the next one is
	workers int
	idle    int // of them, that wait and were not signalled
}

// waiting is a step that waits for its turns, of which it takes the first.
type waiting struct {
	compute func() // nil once it was taken
	giveUp  func() // in place of compute
	place   eventloop.Place
	since   time.Time
}

func newQueue(most int) *queue {
	all := &queue{most: most, clients: turns[netip.Addr]{waiting: map[netip.Addr][]*waiting{}}, zones: domains{waiting: map[string]*turns[string]{}}}
	all.more.L = &all.mu
	return all
}

// add has a step computed soon, for the sake of a client's question about a name, or given up for other queries.
func (all *queue) add(client netip.Addr, name string, w *waiting) {
	all.mu.Lock()
	defer all.mu.Unlock()
	w.since = time.Now()
	all.clients.add(advice.ClientOf(client), w)
	all.zones.add(name, w)
	all.left++
	switch {
	case all.idle > 0:
		all.idle--
		all.more.Signal()
	case all.workers < all.most:
		all.workers++
		go all.work()
	}
}

// do is add, and waits. It reports false if the step was given up. A panic is the caller's.
func (all *queue) do(client netip.Addr, name string, place eventloop.Place, compute func()) bool {
	done := make(chan any, 1)
	all.add(client, name, &waiting{place: place, giveUp: func() { done <- eventloop.ErrGaveWay }, compute: func() {
		defer func() { done <- recover() }()
		compute()
	}})
	v := <-done
	if v != nil && v != any(eventloop.ErrGaveWay) {
		panic(v)
	}
	return v == nil
}

// giver is an eventloop.Giver: of the oldest step with a place that is wanted, of the client or the zone with most that
// wait. If none has many, it is of the top-level domain that most of them are of.
func (all *queue) giver(wanted eventloop.Place) (since time.Time, end func() bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	line := all.clients.longest()
	if zone := all.zones.longest(); len(zone) > len(line) {
		line = zone
	}
	var w *waiting
	if len(line) < crowd {
		w = all.zones.oldest(all.left, wanted)
	} else if i := slices.IndexFunc(line, func(w *waiting) bool { return w.compute != nil && w.place&wanted != 0 }); i >= 0 {
		w = line[i]
	}
	if w == nil {
		return time.Time{}, nil
	}
	return w.since, func() bool { return all.giveUp(w) }
}

// giveUp gives up a step, and reports whether it still waited.
func (all *queue) giveUp(w *waiting) bool {
	all.mu.Lock()
	giveUp := w.giveUp
	if giveUp != nil {
		w.compute, w.giveUp = nil, nil
		all.left--
	}
	all.mu.Unlock()
	if giveUp == nil {
		return false
	}
	giveUp()
	return true
}

func init() { eventloop.OnCrowd(computed.giver) }

// crowd is how many steps one has to have waiting so that he gives places to others.
const crowd = 8

// next waits for a step, and takes it.
func (all *queue) next() (compute func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for all.left == 0 {
		all.idle++
		all.more.Wait()
	}
	var w *waiting
	if all.byZone {
		w = all.zones.next()
	} else {
		w = all.clients.next()
	}
	compute, w.compute, w.giveUp = w.compute, nil, nil
	all.byZone = !all.byZone
	if all.left--; all.left == 0 { // what is there was taken
		all.clients.clear()
		all.zones.clear()
	}
	return compute
}

// turns is the order of those who have steps waiting.
type turns[K comparable] struct {
	waiting map[K][]*waiting
	order   []K
	most    int // that there were in waiting since it was new
}

// smallTurns is so few that to clear waiting takes no time to speak of: that takes as long as there were once many.
const smallTurns = 64

func (t *turns[K]) add(who K, w *waiting) {
	line := t.waiting[who]
	if line == nil {
		t.order = append(t.order, who)
	}
	t.waiting[who] = append(line, w)
	t.most = max(t.most, len(t.waiting))
}

// next is the oldest step of whose turn it is that was not taken, nil if there is none.
func (t *turns[K]) next() *waiting {
	for len(t.order) > 0 {
		who := t.order[0]
		t.order = t.order[1:]
		line := t.waiting[who]
		var w *waiting
		for len(line) > 0 && (w == nil || line[0].compute == nil) {
			if line[0].compute != nil {
				w = line[0]
			}
			line[0], line = nil, line[1:]
		}
		if len(line) > 0 {
			t.waiting[who] = line
			t.order = append(t.order, who)
		} else {
			delete(t.waiting, who)
		}
		if w != nil {
			return w
		}
	}
	return nil
}

// longest is the steps of who has most, the oldest first.
func (t *turns[K]) longest() (most []*waiting) {
	for who, line := range t.waiting {
		taken := 0
		for taken < len(line) && line[taken].compute == nil {
			taken++
		}
		line = line[taken:]
		t.waiting[who] = line
		if len(line) > len(most) {
			most = line
		}
	}
	return most
}

// clear forgets all, for none waits.
func (t *turns[K]) clear() {
	if t.most > smallTurns {
		*t = turns[K]{waiting: map[K][]*waiting{}}
		return
	}
	clear(t.waiting)
	t.order = t.order[:0]
}

// heldStack is the octets of its stack that an idle goroutine holds: the garbage collector would make a stack smaller of
// which less than a quarter is in use.
const heldStack = 8 << 10

// work computes, one step after the other.
func (all *queue) work() {
	var held [heldStack]byte
	for {
		all.next()()
		runtime.KeepAlive(&held)
	}
}
