// Package eventloop is what plugins see of the goroutine that reads a socket: batches of queries, state that belongs to
// one loop, and exchanges on which queries are parked.
//
//	Enter ──▶ queries of a batch ──▶ Done: EndBatch of who was touched ──▶ Leave: Send of who has something to send
//	               │ Park
//	               ▼
//	           Exchange ──EndIn──▶ LoopResumer.ResumeIn in the batch of who ends it, or Resumer.Resume
//
// A Loop is entered by one goroutine at a time, and all but Enter is for that one. Exchanges are ended and awaited by
// any. Where too many queries wait, MakeRoom ends the wait that is oldest. Start at Loop and Ending; then MakeRoom.
package eventloop

import (
	"sync"
	"sync/atomic"
	"time"
)

// Loop is a place where queries are served one after the other: the loop of a socket has one. What plugins keep for
// each loop (PerLoop), such as counters, needs no atomic operations and no lock of its own: its loop is locked while a
// batch of queries is served, and nothing on a loop waits.
//
// A query that may wait has no loop (wire.Query.Loop is nil).
type Loop struct {
	mu      sync.Mutex
	id      int
	touched []Batched
	senders []Sender
	watcher Watcher
}

// Watcher is the goroutine of a loop that reads descriptors of others, too, between its own batches: what comes
// back for a query is best read where the query was served.
type Watcher interface {
	// Watch has r told when descriptor fd has something to read, until Unwatch, for which the index is. The caller
	// is in the loop.
	Watch(fd int, r Readable) (index int32, err error)
	// Unwatch may be called by any goroutine. The descriptor is closed after it.
	Unwatch(index int32)
}

// Readable is what reads a descriptor.
type Readable interface {
	// ReadIn reads what there is, without waiting. The caller is in the loop. It may be called after Unwatch, too.
	ReadIn(l *Loop)
	// Orphaned tells that the goroutine of the loop ends: nobody watches the descriptor any more.
	Orphaned()
}

// Sender has replies to send when a batch is over and all of it is counted.
type Sender interface{ Send() }

// Batched is told when a batch is over in which something was put off to its end.
type Batched interface {
	// EndBatch is called with the time from the batch's begin to the moment before its replies are sent.
	EndBatch(took time.Duration)
}

var loops struct {
	mu   sync.Mutex
	free []int
	open []*Loop // by id, nil if there is none now
}

// New opens a loop; Close ends it. Its id is that of a loop that was closed, if there is one,
// and what is kept for the id goes on.
func New() *Loop {
	loops.mu.Lock()
	defer loops.mu.Unlock()
	l := &Loop{}
	if n := len(loops.free); n > 0 {
		l.id = loops.free[n-1]
		loops.free = loops.free[:n-1]
		loops.open[l.id] = l
	} else {
		l.id = len(loops.open)
		loops.open = append(loops.open, l)
	}
	return l
}

// Close gives the loop's place back.
func (l *Loop) Close() {
	loops.mu.Lock()
	defer loops.mu.Unlock()
	loops.open[l.id] = nil
	loops.free = append(loops.free, l.id)
}

// Enter begins a batch; TryEnter does so if no batch is being served on the loop.
func (l *Loop) Enter()         { l.mu.Lock() }
func (l *Loop) TryEnter() bool { return l.mu.TryLock() }

// WatchWith makes w what Watcher returns. It is called before the loop is first entered.
func (l *Loop) WatchWith(w Watcher) { l.watcher = w }

// Watcher is who reads descriptors of others in the loop, nil if nobody does.
func (l *Loop) Watcher() Watcher { return l.watcher }

// Read reads what is ready, as a batch of its own.
func (l *Loop) Read(ready []Readable) {
	l.Enter()
	for _, r := range ready {
		r.ReadIn(l)
	}
	l.Done(0)
	l.Leave()
}

// Done tells those that touched the loop that all queries of the batch are served, and how long that took. Replies are
// sent after it, so that who got one finds it counted.
func (l *Loop) Done(took time.Duration) {
	for i, b := range l.touched {
		b.EndBatch(took)
		l.touched[i] = nil
	}
	l.touched = l.touched[:0]
}

// Leave ends the batch, and sends what is to be sent then.
func (l *Loop) Leave() {
	if len(l.senders) == 0 {
		l.mu.Unlock()
		return
	}
	var space [4]Sender
	senders := append(space[:0], l.senders...)
	clear(l.senders)
	l.senders = l.senders[:0]
	l.mu.Unlock()
	for _, s := range senders {
		s.Send()
	}
}

// SendLater makes s send at the end of this batch, after the loop was left. To call it again does no harm.
func (l *Loop) SendLater(s Sender) { l.senders = append(l.senders, s) }

// Touch makes b learn the end of this batch. It is to be called once a batch.
func (l *Loop) Touch(b Batched) { l.touched = append(l.touched, b) }

// PerLoop is a T for each loop that asked for one. The zero value is ready for use.
type PerLoop[T any] struct {
	mu  sync.Mutex // held to make all longer
	all atomic.Pointer[[]*T]
}

// Get is the T of a loop, which the caller is in. It is made by a zero T's address at first.
func (p *PerLoop[T]) Get(l *Loop) *T {
	if all := p.all.Load(); all != nil && l.id < len(*all) && (*all)[l.id] != nil {
		return (*all)[l.id]
	}
	return p.add(l.id)
}

func (p *PerLoop[T]) add(id int) *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*T
	if old := p.all.Load(); old != nil {
		all = append(all, *old...)
	}
	for len(all) <= id {
		all = append(all, nil)
	}
	all[id] = new(T)
	p.all.Store(&all)
	return all[id]
}

// Each calls f with each T while nothing is served on its loop. f opens and closes no loop.
func (p *PerLoop[T]) Each(f func(*T)) {
	all := p.all.Load()
	if all == nil {
		return
	}
	for id, v := range *all {
		if v != nil {
			between(id, func() { f(v) })
		}
	}
}

// A batch may open a loop. So a batch is never waited for while loops cannot open, only the other way round.

// between calls f between two batches of the loop that has an id, if there is one. Meanwhile no other one gets the id.
func between(id int, f func()) {
	for {
		loops.mu.Lock()
		l := loops.open[id]
		if l == nil {
			defer loops.mu.Unlock()
			f()
			return
		}
		loops.mu.Unlock()
		if l.during(id, f) {
			return
		}
	}
}

// during calls f between two batches of l, and reports false if l has lost its id before.
func (l *Loop) during(id int, f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	loops.mu.Lock()
	defer loops.mu.Unlock()
	if loops.open[id] != l {
		return false
	}
	f()
	return true
}
