package exec

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// replySpace has room for the reply to most queries.
const replySpace = 1536 + 64 // no power of two, or the begins of all would share cache lines

// Run is what one run of the chain in the wire lane needs beside the packet. It is used again: get one with NewRun,
// give it back with Free.
type Run struct {
	Query    wire.Query
	Deadline time.Time // for the query, if there is one
	reply    wire.Reply
	scratch  [replySpace]byte
}

var runs = sync.Pool{New: func() any { return new(Run) }}

// NewRun is a Run that nobody uses, of a query that gives way while it is parked.
func NewRun() *Run {
	r := runs.Get().(*Run)
	r.Query.SetCrowded(nil, eventloop.Parked)
	return r
}

// Free gives r back.
func (r *Run) Free() {
	r.Deadline = time.Time{}
	runs.Put(r)
}

// Serve runs the chain for a packet. ended is what the query was parked on, nil if on nothing. A reply lies in r's
// memory. Without a loop the caller may wait.
func (r *Run) Serve(s *service.Service, packet []byte, peer wire.Peer, loop *eventloop.Loop, ended eventloop.Exchange) ([]byte, wire.Outcome) {
	if !r.Query.Parse(packet) {
		return nil, wire.Unpack
	}
	r.Query.Peer = peer
	r.Query.SetLoop(loop)
	r.Query.SetMayBlock(loop == nil)
	r.Query.Await(ended)
	if !r.Deadline.IsZero() {
		r.Query.SetDeadline(r.Deadline)
	}
	r.reply.Reset(r.scratch[:0])
	return s.ServeWire(&r.reply, &r.Query)
}

// sharedLoops are for those who serve now and then: connections, and queries that are resumed.
var sharedLoops = sync.OnceValue(func() []*eventloop.Loop {
	loops := make([]*eventloop.Loop, 2*runtime.GOMAXPROCS(0))
	for i := range loops {
		loops[i] = eventloop.New()
	}
	return loops
})

var nextLoop atomic.Uint32

// BorrowLoop enters one of the shared loops, and waits for one if all are in use. Who is in a loop does not call it:
// two such would wait for each other's.
func BorrowLoop() *eventloop.Loop {
	l, entered := freeLoop()
	if !entered {
		l.Enter()
	}
	return l
}

// freeLoop enters one of the shared loops that nobody is in. If there is none, it returns any, which is not entered.
func freeLoop() (l *eventloop.Loop, entered bool) {
	loops := sharedLoops()
	first := int(nextLoop.Add(1))
	for i := range loops {
		if l := loops[(first+i)%len(loops)]; l.TryEnter() {
			return l, true
		}
	}
	return loops[first%len(loops)], false
}
