package wire

import (
	"sync"
	"sync/atomic"
	"time"
)

// Lane is a place where queries are served one after the other: the loop of a socket has one. What plugins keep for
// each lane (PerLane), such as counters, needs no atomic operations and no lock of its own: its lane is locked while a
// batch of queries is served, and nothing on a lane waits.
//
// A query that may wait has no lane (Query.Lane is nil).
type Lane struct {
	mu      sync.Mutex
	id      int
	touched []Batched
	senders []Sender
	watcher Watcher
}

// Watcher is the goroutine of a lane that reads descriptors of others, too, between its own batches: what comes
// back for a query is best read where the query was served.
type Watcher interface {
	// Watch has r told when descriptor fd has something to read, until Unwatch, for which the index is. The caller
	// is in the lane.
	Watch(fd int, r Readable) (index int32, err error)
	// Unwatch may be called by any goroutine. The descriptor is closed after it.
	Unwatch(index int32)
}

// Readable is what reads a descriptor.
type Readable interface {
	// ReadIn reads what there is, without waiting. The caller is in the lane. It may be called after Unwatch, too.
	ReadIn(l *Lane)
	// Orphaned tells that the goroutine of the lane ends: nobody watches the descriptor any more.
	Orphaned()
}

// Sender has replies to send when a batch is over and all of it is counted.
type Sender interface{ Send() }

// Batched is told when a batch is over in which something was put off to its end.
type Batched interface {
	// EndBatch is called with the time from the batch's begin to the moment before its replies are sent.
	EndBatch(took time.Duration)
}

var lanes struct {
	mu   sync.Mutex
	free []int
	open []*Lane // by id, nil if there is none now
}

// NewLane opens a lane; Close ends it. Its id is that of a lane that was closed, if there is one,
// and what is kept for the id goes on.
func NewLane() *Lane {
	lanes.mu.Lock()
	defer lanes.mu.Unlock()
	l := &Lane{}
	if n := len(lanes.free); n > 0 {
		l.id = lanes.free[n-1]
		lanes.free = lanes.free[:n-1]
		lanes.open[l.id] = l
	} else {
		l.id = len(lanes.open)
		lanes.open = append(lanes.open, l)
	}
	return l
}

// Close gives the lane's place back.
func (l *Lane) Close() {
	lanes.mu.Lock()
	defer lanes.mu.Unlock()
	lanes.open[l.id] = nil
	lanes.free = append(lanes.free, l.id)
}

// Enter begins a batch; TryEnter does so if no batch is being served on the lane.
func (l *Lane) Enter()         { l.mu.Lock() }
func (l *Lane) TryEnter() bool { return l.mu.TryLock() }

// WatchWith makes w what Watcher returns. It is called before the lane is first entered.
func (l *Lane) WatchWith(w Watcher) { l.watcher = w }

// Watcher is who reads descriptors of others in the lane, nil if nobody does.
func (l *Lane) Watcher() Watcher { return l.watcher }

// Read reads what is ready, as a batch of its own.
func (l *Lane) Read(ready []Readable) {
	l.Enter()
	for _, r := range ready {
		r.ReadIn(l)
	}
	l.Done(0)
	l.Leave()
}

// Done tells those that touched the lane that all queries of the batch are served, and how long that took. Replies are
// sent after it, so that who got one finds it counted.
func (l *Lane) Done(took time.Duration) {
	for i, b := range l.touched {
		b.EndBatch(took)
		l.touched[i] = nil
	}
	l.touched = l.touched[:0]
}

// Leave ends the batch, and sends what is to be sent then.
func (l *Lane) Leave() {
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

// SendLater makes s send at the end of this batch, after the lane was left. To call it again does no harm.
func (l *Lane) SendLater(s Sender) { l.senders = append(l.senders, s) }

// Touch makes b learn the end of this batch. It is to be called once a batch.
func (l *Lane) Touch(b Batched) { l.touched = append(l.touched, b) }

// PerLane is a T for each lane that asked for one. The zero value is ready for use.
type PerLane[T any] struct {
	mu  sync.Mutex // held to make all longer
	all atomic.Pointer[[]*T]
}

// Get is the T of a lane, which the caller is in. It is made by a zero T's address at first.
func (p *PerLane[T]) Get(l *Lane) *T {
	if all := p.all.Load(); all != nil && l.id < len(*all) && (*all)[l.id] != nil {
		return (*all)[l.id]
	}
	return p.add(l.id)
}

func (p *PerLane[T]) add(id int) *T {
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

// Each calls f with each T while nothing is served on its lane.
func (p *PerLane[T]) Each(f func(*T)) {
	all := p.all.Load()
	if all == nil {
		return
	}
	lanes.mu.Lock() // no lane opens or closes meanwhile
	defer lanes.mu.Unlock()
	for id, v := range *all {
		switch l := lanes.open[id]; {
		case v == nil:
		case l == nil:
			f(v)
		default:
			l.mu.Lock()
			f(v)
			l.mu.Unlock()
		}
	}
}
