package exec

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// Batch is the time in which a connection's goroutine serves what has come, on a loop of its own: from the first
// query until it has to wait. It belongs to that goroutine.
type Batch struct {
	Loop  *eventloop.Loop // nil between batches
	Run   *Run            // as Loop
	Began time.Time
}

// Enter begins a batch, unless one goes on.
func (b *Batch) Enter() {
	if b.Loop == nil {
		b.Began = time.Now()
		b.Loop = BorrowLoop() // before the Run, see answerWire
		b.Run = NewRun()
	}
}

// Leave ends the batch. It is called before anything that may wait; the loop is wanted by others.
func (b *Batch) Leave() {
	if b.Loop != nil {
		b.LeaveWith().Free()
	}
}

// LeaveWith is Leave for who still needs the Run, which he frees then.
func (b *Batch) LeaveWith() *Run {
	b.Loop.Done(time.Since(b.Began))
	b.Loop.Leave()
	r := b.Run
	b.Loop, b.Run = nil, nil
	return r
}
