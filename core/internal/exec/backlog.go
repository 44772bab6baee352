package exec

import (
	"runtime"
	"time"
)

// Queries over UDP that are given to workers wait for a processor at first. Of those that have a goroutine for it there
// are some for each processor; Go's scheduler gives all that can go on their turns, and the reader of a socket would be
// one of thousands. The others wait in a backlog, and who begins sees to it that one of them is next.
//
// Where more come than there are processors for, each waits as long as the one before it and a little more, and in the
// end all are answered when nobody waits for the answer any more: the server works as hard as it can, and is of no use.
// So those are dropped that have waited for long, once some have waited all the time for longer: those behind them are
// in time. A burst is served, as it comes.
const (
	perProcessor = 16
	waitedLong   = int64(500 * time.Millisecond) // clients ask again after a second, or a few
	burst        = int64(4 * time.Second)        // for so long most clients wait
	again        = int64(10 * time.Second)       // so soon after one that was late no burst is waited for
)

// backlog is what waits to begin, the oldest first. Times are those of service.Now. workers.mu guards it.
type backlog struct {
	ahead   int // goroutines that may wait to begin
	unbegun int // that do
	queue   []*Waiting
	first   int   // of queue
	since   int64 // when it was empty for the last time
	late    int64 // when one was too late for the last time; 0 if none was
}

func newBacklog() backlog { return backlog{ahead: perProcessor * runtime.GOMAXPROCS(0)} }

func (b *backlog) len() int { return len(b.queue) - b.first }

// add takes t if there are others to begin before it.
func (b *backlog) add(t *Waiting) bool {
	switch {
	case b.len() > 0:
	case b.unbegun < b.ahead:
		b.unbegun++
		return false
	default:
		b.since = t.came
		b.queue, b.first = b.queue[:0], 0
	}
	if b.first > len(b.queue)/2 && len(b.queue) == cap(b.queue) { // there is as much memory in front
		n := copy(b.queue, b.queue[b.first:])
		clear(b.queue[n:])
		b.queue, b.first = b.queue[:n], 0
	}
	b.queue = append(b.queue, t)
	return true
}

// next is what is to begin now, nil if nothing is; late says that it is too late for it.
func (b *backlog) next(now int64) (t *Waiting, late bool) {
	if b.len() == 0 || b.unbegun >= b.ahead {
		return nil, false
	}
	t = b.queue[b.first]
	b.queue[b.first] = nil
	b.first++
	if b.len() == 0 && cap(b.queue) > keptQueue {
		b.queue, b.first = nil, 0
	}
	if now-t.came > waitedLong && (now-b.since > burst || b.late != 0 && now-b.late < again) {
		b.late = now
		return t, true
	}
	b.unbegun++
	return t, false
}

// keptQueue is for how many the memory of an empty queue is kept.
const keptQueue = 1024
