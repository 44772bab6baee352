package dnsserver

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// origin is where a query came from that is not answered at once: a transport, and the way back to one client.
type origin interface {
	base() *Server
	// serveMessage serves the query in the message lane, on a goroutine that may wait.
	serveMessage(packet []byte)
	// reply sends a reply of the wire lane; mayWait says whether the caller may wait for the client to take it.
	reply(b []byte, mayWait bool)
	// begin says that the query is in flight, end that it is not any more.
	begin()
	end()
	// room is memory for the query as long as it waits, up to end; nil if there is none.
	room() *waitingQuery
}

// waitingQuery is a query that waits: for a worker, on which it may block, or parked, for an exchange that
// somebody else ends. Then the chain runs again, from the packet as it came.
type waitingQuery struct {
	origin  origin
	packet  []byte
	peer    wire.Peer
	message bool          // it takes the message lane
	waits   wire.Exchange // what it was parked on last
	pooled  bool          // it does not lie in the origin's memory
}

var waitingQueries = sync.Pool{New: func() any { return new(waitingQuery) }}

// parked is how many queries of the process wait for exchanges.
var parked atomic.Int64

// later sees to a query of a transport that cannot be answered at once, as the outcome of its first
// run says. It is dropped if too many are waiting. packet and q are not kept.
func later(from origin, packet []byte, q *wire.Query, out wire.Outcome) {
	w := newWaiting(from, packet, q, out)
	if out != wire.Park {
		w.toWorker()
		return
	}
	if parked.Add(1) > waiting().most.Load() {
		parked.Add(-1)
		w.drop()
		return
	}
	w.park(q)
}

func newWaiting(from origin, packet []byte, q *wire.Query, out wire.Outcome) *waitingQuery {
	w := from.room()
	if w == nil {
		w = waitingQueries.Get().(*waitingQuery)
		w.pooled = true
	}
	w.origin, w.message, w.waits = from, out == wire.Unpack, nil
	if q != nil {
		w.peer = q.Peer
	}
	w.packet = append(w.packet[:0], packet...)
	from.begin()
	return w
}

// laterOn is later for transports that wait for a worker instead of dropping what they received.
func laterOn(from origin, packet []byte, q *wire.Query, out wire.Outcome) {
	w := newWaiting(from, packet, q, out)
	if out != wire.Park {
		waiting().do(w)
		return
	}
	parked.Add(1)
	w.park(q)
	for parked.Load() > waiting().most.Load() {
		time.Sleep(parkedPause)
	}
}

// parkedPause is how long a transport sleeps before it looks again whether not too many queries are parked.
const parkedPause = time.Millisecond

func (w *waitingQuery) toWorker() {
	if !waiting().try(w) {
		w.drop()
	}
}

// park lets the query run again when the exchange has ended that q says.
func (w *waitingQuery) park(q *wire.Query) {
	w.waits = q.Awaited()
	q.Wait(w)
}

func (w *waitingQuery) drop() {
	vars.QueriesDropped.WithLabelValues(w.origin.base().Addr, "waiting").Inc()
	w.free()
}

func (w *waitingQuery) free() {
	from := w.origin
	w.origin, w.waits = nil, nil
	if w.pooled {
		waitingQueries.Put(w)
	}
	from.end()
}

// run serves the query on a worker.
func (w *waitingQuery) run() {
	if w.message {
		defer log.Idle()
		defer w.free() // also if a handler ends the goroutine
		w.origin.serveMessage(w.packet)
		return
	}
	w.again(nil)
}

// Resume serves the query when what it was parked on has ended.
func (w *waitingQuery) Resume() {
	parked.Add(-1)
	w.again(enterLane())
}

// laneOrigin is an origin whose replies can be sent when a batch is over.
type laneOrigin interface {
	replyIn(lane *wire.Lane, b []byte)
}

// ResumeIn serves the query in the caller's batch, if its reply can wait for the end of that.
func (w *waitingQuery) ResumeIn(lane *wire.Lane) (done bool) {
	from, ok := w.origin.(laneOrigin)
	if !ok {
		w.Resume()
		return false
	}
	parked.Add(-1)
	r := runs.Get().(*run)
	defer runs.Put(r)
	reply, out := r.serve(w.origin.base(), w.packet, w.peer, lane, w.waits)
	if out != wire.Done {
		w.onward(&r.query, out, true)
		return false
	}
	if reply != nil {
		from.replyIn(lane, reply)
	}
	w.free()
	return true
}

// again runs the chain once more, on a lane that was entered, or where it may wait.
func (w *waitingQuery) again(lane *wire.Lane) {
	r := runs.Get().(*run)
	defer runs.Put(r)
	reply, out := r.serve(w.origin.base(), w.packet, w.peer, lane, w.waits)
	if lane != nil {
		lane.Done(0)
		lane.Leave()
	}
	if out != wire.Done {
		w.onward(&r.query, out, lane != nil)
		return
	}
	if reply != nil {
		w.origin.reply(reply, lane == nil)
	}
	w.free()
	log.Idle()
}

// onward sees to a query that is not answered by this run either.
func (w *waitingQuery) onward(q *wire.Query, out wire.Outcome, inLane bool) {
	switch {
	case out == wire.Park && q.Awaited() != w.waits:
		parked.Add(1)
		w.park(q)
	case out == wire.Block && inLane:
		w.toWorker()
	default:
		w.message = true
		if inLane {
			w.toWorker()
			return
		}
		w.run()
	}
}

// run is what one run of the chain in the wire lane needs beside the packet.
type run struct {
	query    wire.Query
	deadline time.Time // for the query, if there is one
	reply    wire.Reply
	room     [replySpace]byte
}

var runs = sync.Pool{New: func() any { return new(run) }}

// serve runs the chain for a packet that has been found eligible. ended is what the query was parked on, nil if on nothing. A reply lies
// in r's memory.
func (r *run) serve(s *Server, packet []byte, peer wire.Peer, lane *wire.Lane, ended wire.Exchange) ([]byte, wire.Outcome) {
	if !r.query.Parse(packet) {
		return nil, wire.Unpack
	}
	r.query.Peer = peer
	r.query.SetLane(lane)
	r.query.SetMayBlock(lane == nil)
	r.query.Await(ended)
	if !r.deadline.IsZero() {
		r.query.SetDeadline(r.deadline)
	}
	r.reply.Reset(r.room[:0])
	return s.serveWire(&r.reply, &r.query)
}

// sharedLanes are for those who serve now and then: connections, and queries that are resumed.
var sharedLanes = sync.OnceValue(func() []*wire.Lane {
	lanes := make([]*wire.Lane, 2*runtime.GOMAXPROCS(0))
	for i := range lanes {
		lanes[i] = wire.NewLane()
	}
	return lanes
})

var nextLane atomic.Uint32

// enterLane enters one of the shared lanes.
func enterLane() *wire.Lane {
	lanes := sharedLanes()
	first := int(nextLane.Add(1))
	for i := range lanes {
		if l := lanes[(first+i)%len(lanes)]; l.TryEnter() {
			return l
		}
	}
	l := lanes[first%len(lanes)]
	l.Enter()
	return l
}
