package exec

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/memory"
)

// pool runs the queries that may wait, of all servers of the process.
var pool = sync.OnceValue(func() *workers { return newWorkers(memory.Waiting(memory.Limit())) })

// SetWaiting changes how many queries of the process may wait at one time; 0 is any number.
func SetWaiting(n int) { pool().limit(n) }

// Enter lets the caller wait on his own goroutine, as one of those that may, until Leave. It reports false if all are
// at work, and ctx ends before one of them is done, or many want that already.
func Enter(ctx context.Context) bool { return pool().enter(ctx) }

// Leave ends what Enter began.
func Leave() { pool().leave() }

// Waits is how many queries of the process are at work where they may wait, and how many are parked.
func Waits() (atWork, atExchanges int) {
	w := pool()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.busy(), int(parked.Load())
}

// ErrCrowded says that too many queries wait already, and that who asked did not wait for one of them to end.
var ErrCrowded = errors.New("too many queries wait")

// task is something that may wait: a query in the message lane.
type task interface{ run() }

// workers runs tasks on goroutines that live on, so that their stacks stay grown. The
// one that was last at work gets the next task, as its memory is still in the caches. There are never
// more than max; who brings a task decides what happens then: it is refused, or waits.
type workers struct {
	keepIdle int // goroutines without a task

	mu   sync.Mutex
	max  int       // of goroutines; see most
	free sync.Cond // a worker became idle, or gives way
	idle []*worker // the last one is the last that was at work
	n    int       // workers there are, and those that wait on goroutines of their own
	want int       // those that wait in enter
	crowd
	backlog

	most atomic.Int64 // max, for those that do not hold mu
}

// heldStack is the octets of its stack that an idle worker holds: the garbage collector would make a stack smaller
// of which less than a quarter is in use, and each query would grow it again.
const heldStack = 4 << 10

type worker struct{ next chan task }

func newWorkers(max int) *workers {
	w := &workers{keepIdle: 256, backlog: newBacklog()}
	w.free.L = &w.mu
	w.limit(max)
	return w
}

// limit changes how many goroutines there may be; 0 is any number. What runs goes on.
func (w *workers) limit(max int) {
	if max <= 0 {
		max = math.MaxInt
	}
	w.mu.Lock()
	w.max = max
	w.mu.Unlock()
	w.most.Store(int64(max))
	w.free.Broadcast()
}

// try gives t to a worker, or reports false if all are at work, and none of them gives way.
func (w *workers) try(t task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ok := w.makeRoom()
	if ok {
		w.give(t)
	}
	return ok
}

// queue is try for a query that may wait for others to begin.
func (w *workers) queue(t *Waiting) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ok := w.makeRoom()
	if ok && !w.backlog.add(t) {
		w.give(t)
	}
	return ok
}

// begun is called by what queue has taken, when it begins. Others are next, and those for which it is too late are
// dropped.
func (w *workers) begun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unbegun--
	if w.backlog.len() == 0 {
		return
	}
	now := service.Now()
	for t, late := w.backlog.next(now); t != nil; t, late = w.backlog.next(now) {
		if !late {
			w.give(t)
			continue
		}
		w.free.Signal() // there is one less
		w.mu.Unlock()
		t.drop()
		w.mu.Lock()
	}
}

// do gives t to a worker, and waits for one if all are at work.
func (w *workers) do(t task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.makeRoom() || w.wait(context.Background()) {
		w.give(t)
	}
}

// A query for which its transport has a goroutine waits for room, at most one for so many that may be at work, but for
// wantAtLeast: each stream of a connection may have such a query, which takes some 18 KiB.
const (
	wantShare   = 8
	wantAtLeast = 256
)

// enter lets the caller wait on his own goroutine, as one of those that there may be, until leave. It reports false
// if all are at work, and ctx ends before one of them is done, or many want that already.
func (w *workers) enter(ctx context.Context) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.makeRoom() {
		if w.want >= max(w.max/wantShare, wantAtLeast) {
			return false
		}
		w.want++
		defer func() { w.want-- }()
		stop := context.AfterFunc(ctx, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.free.Broadcast()
		})
		defer stop()
		if !w.wait(ctx) {
			return false
		}
	}
	w.n++
	return true
}

// begin is enter for one who waits already.
func (w *workers) begin() {
	w.mu.Lock()
	w.n++
	w.mu.Unlock()
}

// leave ends what enter or begin began.
func (w *workers) leave() {
	w.mu.Lock()
	w.n--
	w.free.Signal()
	w.mu.Unlock()
}

// full reports whether as many are at work as there may be, or about to be. mu is held.
func (w *workers) full() bool { return w.busy() >= w.max }

func (w *workers) busy() int { return w.n - len(w.idle) + w.backlog.len() }

// give gives t to a worker, were it one more than there may be. mu is held.
func (w *workers) give(t task) {
	if i := len(w.idle) - 1; i >= 0 {
		worker := w.idle[i]
		w.idle[i] = nil
		w.idle = w.idle[:i]
		worker.next <- t
		return
	}
	w.n++
	worker := &worker{next: make(chan task, 1)}
	worker.next <- t
	go w.work(worker)
}

// work runs tasks until there are enough idle workers without this one.
func (w *workers) work(me *worker) {
	var held [heldStack]byte
	defer runtime.KeepAlive(&held)
	defer w.leave() // a task may end the goroutine, too
	for t := range me.next {
		t.run()
		w.mu.Lock()
		if len(w.idle) >= w.keepIdle {
			w.mu.Unlock()
			return
		}
		w.idle = append(w.idle, me)
		w.free.Signal()
		w.mu.Unlock()
	}
}
