package control

import (
	"net/netip"
	"runtime"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// tops is what came most often to the server: one top for all of it, however many processors there are, as a name that
// is popular is so on all of them. A loop notes its queries for itself, and enters them when it has some, so that it
// takes the lock once for many. Loops come first in the order of locks, mu second.
type tops struct {
	loops eventloop.PerLoop[notes]

	mu  sync.Mutex
	top *top // guarded by mu; nil before the first query
}

// notes is the queries of a loop that are not yet entered. Nobody else touches it.
type notes struct {
	list []note
	n    int
}

// note is a query: what top.note wants of it.
type note struct {
	hash   uint64
	client [16]byte
	qtype  uint16
	rcode  uint16
	length uint8 // of name
	name   [nameRoom - 1]byte
}

// budget is the octets of memory that tops takes at most, and noteRoom those of a note.
const (
	budget   = 1 << 20
	noteRoom = 112
)

// notesOfLoop is how many queries a loop notes before it enters them. With that many the lock is lost in the noise; on
// machines with very many processors there are fewer, for all loops share what the sketches leave of the budget. A
// processor has a loop for each address and two for connections, about.
var notesOfLoop = sync.OnceValue(func() int {
	return noteCount(newTop().size(), 4*runtime.GOMAXPROCS(0))
})

// noteCount is notesOfLoop for loops of a number, beside a top of a size in octets.
func noteCount(size, loops int) int { return min(16, max(1, (budget-size)/(loops*noteRoom))) }

// note counts a query that was served on a loop, which the caller is in.
func (t *tops) note(l *eventloop.Loop, name []byte, hash uint64, client netip.Addr, qtype uint16, rcode int) {
	p := t.loops.Get(l)
	if p.list == nil {
		p.list = make([]note, notesOfLoop())
	}
	n := &p.list[p.n]
	n.hash, n.client, n.qtype, n.rcode = hash, client.As16(), qtype, uint16(rcode)
	if rest := len(name) - len(n.name); rest > 0 {
		name = name[rest:] // as the sketch does
	}
	n.length = uint8(copy(n.name[:], name))
	if p.n++; p.n == len(p.list) {
		t.enter(p)
	}
}

// enter counts what a loop has noted.
func (t *tops) enter(p *notes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.made()
	for i := range p.list[:p.n] {
		n := &p.list[i]
		one.note(n.name[:n.length], n.hash, n.client, n.qtype, int(n.rcode))
	}
	p.n = 0
}

// made is the top. It is called with the lock.
func (t *tops) made() *top {
	if t.top == nil {
		t.top = newTop()
	}
	return t.top
}

// noteElsewhere counts a query that was served on no loop.
func (t *tops) noteElsewhere(name []byte, client netip.Addr, qtype uint16, rcode int) {
	hash := wire.Hash(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made().note(name, hash, client.As16(), qtype, rcode)
}

// look calls f with all that was counted, while nobody counts. It is to be quick: the whole server waits for it.
func (t *tops) look(f func(*top)) {
	t.loops.Each(t.enter)
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.made())
}
