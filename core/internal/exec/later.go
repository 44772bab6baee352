package exec

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Source is where a query came from that is not answered at once: a transport, and the way back to one client.
type Source interface {
	// ServeMessage has s serve the query in the message lane, on a goroutine that may wait.
	ServeMessage(s *service.Service, packet []byte)
	// Reply sends a reply of the wire lane; mayWait says whether the caller may wait for the client to take it.
	Reply(b []byte, mayWait bool)
	// Begin says that the query is in flight with s, End that it is not any more.
	Begin(s *service.Service)
	End(s *service.Service)
	// Scratch is memory for the query as long as it waits, up to End; nil if there is none.
	Scratch() *Waiting
}

// loopSource is a Source whose replies can be sent when a batch is over.
type loopSource interface {
	ReplyIn(loop *eventloop.Loop, b []byte)
}

// flusher is a Source whose replies go out when its transport waits for more queries, or is told that it waits here.
type flusher interface{ Flush() }

// Waiting is a query that waits: for a worker, on which it may block, or parked, for an exchange that
// somebody else ends. Then the chain runs again, from the packet as it came.
type Waiting struct {
	from    Source
	service *service.Service // that it began with
	packet  []byte
	peer    wire.Peer
	message bool               // it takes the message lane
	dropped bool               // if it cannot wait
	waits   eventloop.Exchange // what it was parked on last
	came    int64              // when it was given to workers, by service.Now, until it begins; else 0
	pooled  bool               // it does not lie in the source's memory
	places  int                // of those for large ones, that it has
}

var waitingPool = sync.Pool{New: func() any { return new(Waiting) }}

// parked is how many queries of the process wait for exchanges.
var parked atomic.Int64

// LaterOrDrop sees to a query of a transport that cannot be answered at once, as the outcome of its first
// run says. It is dropped if too many are waiting. packet and q are not kept.
func LaterOrDrop(from Source, s *service.Service, packet []byte, q *wire.Query, out wire.Outcome) {
	from.Begin(s)
	w := newWaiting(from, s, packet, q, out)
	w.dropped = true
	if n := placesOf(len(packet)); large.take(n) {
		w.places = n
	} else {
		w.drop()
		return
	}
	if out != wire.Park {
		w.came = service.Now()
		if !pool().queue(w) {
			w.drop()
		}
		return
	}
	if q.Awaited() == nil { // nothing was begun for it, as there was no room
		w.drop()
		return
	}
	if parked.Add(1) > pool().most.Load() { // as when it waits for what another one began
		parked.Add(-1)
		if !makeRoom() {
			w.drop()
			return
		}
		parked.Add(1)
	}
	w.park(q)
}

// Later is LaterOrDrop for transports that wait for a worker instead of dropping what they received.
func Later(from Source, s *service.Service, packet []byte, q *wire.Query, out wire.Outcome) {
	if out == wire.Park && q.Awaited() == nil { // a plugin that began nothing, for a reason of its own
		out = wire.Unpack
	}
	from.Begin(s)
	n := placesOf(len(packet))
	if !large.take(n) {
		flush(from)
		large.wait(n) // before there is a copy of it
	}
	w := newWaiting(from, s, packet, q, out)
	w.places = n
	if out != wire.Park {
		if !pool().try(w) {
			flush(from)
			pool().do(w)
		}
		return
	}
	parked.Add(1)
	w.park(q)
	if parked.Load() > pool().most.Load() {
		flush(from)
	}
	for parked.Load() > pool().most.Load() {
		if !parkedPlaces.makeRoom() {
			time.Sleep(parkedPause)
		}
	}
}

// flush has what from's client was answered go out, before its transport waits.
func flush(from Source) {
	if f, ok := from.(flusher); ok {
		f.Flush()
	}
}

// parkedPause is how long a transport sleeps before it looks again whether not too many queries are parked.
const parkedPause = time.Millisecond

// newWaiting is a query of which from.Begin was told.
func newWaiting(from Source, s *service.Service, packet []byte, q *wire.Query, out wire.Outcome) *Waiting {
	w := from.Scratch()
	if w == nil {
		w = waitingPool.Get().(*Waiting)
		w.pooled = true
	}
	w.from, w.service, w.message, w.dropped, w.waits, w.came = from, s, out == wire.Unpack, false, nil, 0
	if q != nil {
		w.peer = q.Peer
	}
	w.packet = append(w.packet[:0], packet...)
	return w
}

func (w *Waiting) toWorker() {
	if !pool().try(w) {
		w.drop()
	}
}

// park lets the query run again when the exchange has ended that q says.
func (w *Waiting) park(q *wire.Query) {
	w.waits = q.Awaited()
	q.Wait(w)
}

func (w *Waiting) drop() {
	w.service.Dropped()
	w.free()
}

func (w *Waiting) free() {
	from, s := w.from, w.service
	large.give(w.places)
	w.from, w.service, w.waits, w.places = nil, nil, nil, 0
	if w.pooled {
		waitingPool.Put(w)
	}
	from.End(s)
}

// run serves the query on a worker.
func (w *Waiting) run() {
	if w.came != 0 {
		w.came = 0
		pool().begun()
	}
	if w.message {
		defer log.Idle()
		defer w.free() // also if a handler ends the goroutine
		w.from.ServeMessage(w.service, w.packet)
		return
	}
	w.again(nil)
}

// Resume serves the query when what it was parked on has ended. Who has ended it may be in a loop, so a free one is
// taken and none waited for.
func (w *Waiting) Resume() {
	parked.Add(-1)
	if loop, entered := freeLoop(); entered {
		w.again(loop)
		return
	}
	w.toWorker()
}

// ResumeIn serves the query in the caller's batch, if its reply can wait for the end of that.
func (w *Waiting) ResumeIn(loop *eventloop.Loop) (done bool) {
	from, ok := w.from.(loopSource)
	if !ok {
		w.Resume()
		return false
	}
	parked.Add(-1)
	r := NewRun()
	defer r.Free()
	reply, out := r.Serve(w.service, w.packet, w.peer, loop, w.waits)
	if out != wire.Done {
		w.onward(&r.Query, out, true)
		return false
	}
	if reply != nil {
		from.ReplyIn(loop, reply)
	}
	w.free()
	return true
}

// again runs the chain once more, on a loop that was entered, or where it may wait.
func (w *Waiting) again(loop *eventloop.Loop) {
	r := NewRun()
	defer r.Free()
	reply, out := r.Serve(w.service, w.packet, w.peer, loop, w.waits)
	if loop != nil {
		loop.Done(0)
		loop.Leave()
	}
	if out != wire.Done {
		w.onward(&r.Query, out, loop != nil)
		return
	}
	if reply != nil {
		w.from.Reply(reply, loop == nil)
	}
	w.free()
	log.Idle()
}

// onward sees to a query that is not answered by this run either.
func (w *Waiting) onward(q *wire.Query, out wire.Outcome, inLoop bool) {
	x := q.Awaited()
	switch {
	case out == wire.Park && x == nil && w.dropped:
		w.drop()
	case out == wire.Park && x != nil && x != w.waits:
		parked.Add(1)
		w.park(q)
	case out == wire.Block && inLoop:
		w.toWorker()
	default:
		w.message = true
		if inLoop {
			w.toWorker()
			return
		}
		w.run()
	}
}
