package eventloop

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrGaveWay is the cause with which the context of a query ends that gave way: see Patience.
var ErrGaveWay = errors.New("given up for another query")

// Patience is for queries that wait on goroutines of their own, for somebody who may be silent. Where all places are
// taken, the one that has waited longest gives way to another query: after 200 ms, or twice the time that answers
// usually take. The zero Patience knows no answers yet.
type Patience struct {
	usual Usual
	begun atomic.Uint32
}

const (
	stayer     = 64 // of so many queries one does not give way: else nothing would tell of who has become slow
	lookAtMost = 64 // queries
)

// waiter is a query that waits.
type waiter struct {
	of    *Patience
	place Place
	began time.Time
	in    context.Context
	end   context.CancelCauseFunc // nil if it does not give way
	at    *list.Element           // in waiters
}

// waiters are those of all Patiences that may give way, in the order in which they began.
var waiters struct {
	mu  sync.Mutex
	all list.List
}

func init() { OnCrowd(giveWay) }

// Wait returns the context to wait in: that of a query, which ends with ErrGaveWay if the query is to give way. Whoever
// calls it calls done when it waits no more, with the error if there was no answer. done returns the error to go on
// with: ErrGaveWay if that is the cause.
func (p *Patience) Wait(ctx context.Context) (in context.Context, done func(error) error) {
	w := &waiter{of: p, place: PlaceOf(ctx), began: time.Now(), in: ctx}
	if w.place != 0 && p.begun.Add(1)%stayer != 0 {
		w.in, w.end = context.WithCancelCause(ctx)
		waiters.mu.Lock()
		w.at = waiters.all.PushBack(w)
		waiters.mu.Unlock()
	}
	return w.in, w.done
}

// done ends the wait of w.
func (w *waiter) done(err error) error {
	if err == nil {
		w.of.usual.Note(time.Since(w.began))
	}
	if w.end == nil {
		return err
	}
	if err != nil && context.Cause(w.in) == ErrGaveWay {
		err = ErrGaveWay
	}
	waiters.mu.Lock()
	waiters.all.Remove(w.at)
	waiters.mu.Unlock()
	w.end(nil)
	return err
}

// giveWay ends the wait of the query that has waited longest, of those that have a place that is wanted and have
// waited for long. It looks at the first ones only.
func giveWay(wanted Place) bool {
	waiters.mu.Lock()
	at := waiters.all.Front()
	for i := 0; i < lookAtMost && at != nil; i++ {
		w := at.Value.(*waiter)
		if w.place&wanted != 0 && time.Since(w.began) >= w.of.usual.Patience() {
			waiters.all.Remove(at)
			waiters.mu.Unlock()
			w.end(ErrGaveWay)
			return true
		}
		at = at.Next()
	}
	waiters.mu.Unlock()
	return false
}
