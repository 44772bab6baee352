package eventloop

import (
	"context"
	"errors"
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

// stayer is of how many queries one does not give way: else nothing would tell of who has become slow.
const stayer = 64

// wait is a query that waits.
type wait struct {
	Holder
	of  *Patience
	in  context.Context
	end context.CancelCauseFunc // nil if it does not give way
}

// Wait returns the context to wait in: that of a query, which ends with ErrGaveWay if the query is to give way. Whoever
// calls it calls done when it waits no more, with the error if there was no answer. done returns the error to go on
// with: ErrGaveWay if that is the cause.
func (p *Patience) Wait(ctx context.Context) (in context.Context, done func(error) error) {
	w := &wait{of: p, in: ctx}
	place := PlaceOf(ctx)
	if place == 0 || p.begun.Add(1)%stayer == 0 {
		w.since = time.Now()
		return ctx, w.done
	}
	w.in, w.end = context.WithCancelCause(ctx)
	w.Begin(place, p.usual.Patience, func() { w.end(ErrGaveWay) })
	return w.in, w.done
}

// done ends the wait of w.
func (w *wait) done(err error) error {
	if err == nil {
		w.of.usual.Note(time.Since(w.since))
	}
	if w.end == nil {
		return err
	}
	if err != nil && context.Cause(w.in) == ErrGaveWay {
		err = ErrGaveWay
	}
	w.Done()
	w.end(nil)
	return err
}
