package forward

import (
	"context"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// asyncRun carries out the course of one query that no goroutine waits for, for a pendingReply. It is what blockingRun is for the message lane.
//
// The course is stepped by whoever ends an exchange. With its last step the run is over, and may be used for another one.
type asyncRun struct {
	course
	upstreamSet
	pending   *pendingReply // nil while the run is not used, and has left the last one to others
	began     time.Time
	deadline  time.Time
	cancelled time.Time       // when nobody waits any more; zero is never
	givesWay  eventloop.Place // to a query that comes when too many wait

	x       proxy.Exchange
	query   []byte
	cookie  bool // the client sent one
	numbers [16]int
	scratch [128]byte // for query
	hedged  bool      // a hedge may still have an exchange under way

	reply []byte // of the last attempt that had one
}

var asyncRuns = sync.Pool{New: func() any { return new(asyncRun) }}

// newAsyncRun is an asyncRun that asks what q does, with a pendingReply. It is to be begun.
func (f *Forward) newAsyncRun(q *wire.Query) *asyncRun {
	e := asyncRuns.Get().(*asyncRun)
	if e.pending == nil {
		e.pending = new(pendingReply)
	}
	e.upstreamSet, e.began = upstreamSet{f, *f.upstreams.Load()}, q.Arrival
	if !q.JustCame() {
		e.began = time.Now()
	}
	e.course = f.newCourse(&e.upstreamSet, q.Proto == wire.TCP, q.Loop(), e.numbers[:0], len(e.upstreams))
	e.course.whole, e.givesWay = q.Stream(), q.GivesWay()
	e.deadline = e.began.Add(overall)
	if e.cancelled = q.Deadline(); !e.cancelled.IsZero() && e.cancelled.Before(e.deadline) {
		e.deadline = e.cancelled
	}
	e.query, e.cookie = q.Append(e.scratch[:0], 0), false
	if q.EDNS().Set&(wire.HasCookie|wire.HasKeepalive|wire.HasPadding) != 0 {
		e.query, e.cookie = replies.CutHopByHop(e.query)
	}
	return e
}

// gone reports whether nobody waits any more.
func (e *asyncRun) gone() bool { return !e.cancelled.IsZero() && !time.Now().Before(e.cancelled) }

// proceed takes the next step after something happened. The asyncRun may be over then.
//
// loop is the one that the caller is in, nil if in none.
func (e *asyncRun) proceed(ev event, loop *eventloop.Loop) {
	if ev.kind == failed || ev.kind == replied && e.rules.failover.has(ev.rcode) { // else nobody is asked any more
		ev.at = time.Since(e.began)
	}
	ev.gone = e.gone()
	a := e.step(ev)
	e.forward.note(e.upstreams, a)
	switch {
	case a.do != ask:
		e.finish(a, loop)
	case a.after > 0:
		time.AfterFunc(a.after, func() { e.ask(a, nil) })
	default:
		e.ask(a, loop)
	}
}

func (e *asyncRun) ask(a action, loop *eventloop.Loop) {
	e.x.Query, e.x.Stream, e.x.Deadline, e.x.Owner, e.x.Timeout = e.query, a.stream, e.deadline, e, 0
	e.x.GivesWay, e.x.Cookie, e.x.Final = e.givesWay, e.cookie && !a.again, a.again
	if a.second >= 0 {
		e.hedged = true
		e.forward.newHedge(e, e.upstreams[a.to], e.upstreams[a.second], a.slow, e.x).begin()
		return
	}
	e.upstreams[a.to].BeginIn(&e.x, loop)
}

// hedgeEnded implements hedger.
func (e *asyncRun) hedgeEnded(ra *hedge, loop *eventloop.Loop) {
	if e.gaveWay(ra.err) {
		return
	}
	if ra.err == nil {
		e.reply = ra.reply
	}
	e.proceed(ra.event(e.gone()), loop)
}

// EndExchange implements proxy.Ender.
func (e *asyncRun) EndExchange(x *proxy.Exchange) {
	if err := x.Err; err != nil {
		if e.gaveWay(err) {
			return
		}
		gone := e.gone()
		if gone { // as blockingRun has it
			err = context.DeadlineExceeded
		}
		e.proceed(event{kind: failed, failure: failureOf(gone, err), err: err}, nil)
		return
	}
	if e.reply = x.Facts.WithoutHopByHop(append(e.reply[:0], x.Reply...)); e.forward.scrubs {
		e.reply = e.forward.scrub(e.reply)
	}
	loop := x.Loop
	x.Reply, x.Loop = nil, nil
	e.proceed(event{kind: replied, rcode: x.Facts.Rcode, empty: x.Facts.Answers == 0, tc: x.Facts.TC}, loop)
}

// gaveWay ends the run if err says that its query gives way. Where all do, none fails for its time, so it is looked here
// whether the upstream is well.
func (e *asyncRun) gaveWay(err error) bool {
	if !gaveWay(e.givesWay, err) {
		return false
	}
	e.forward.doubtInCrowd(e.upstreams[e.course.asked], int64(time.Since(epoch)))
	a := e.step(event{kind: failed, failure: ours, err: err, gone: true})
	if a.do == fail {
		a.do = giveWay
	}
	e.finish(a, nil)
	return true
}

// finish tells the pendingReply what came of the course.
func (e *asyncRun) finish(a action, loop *eventloop.Loop) {
	if e.forward.maxConcurrent > 0 {
		e.forward.concurrent.Add(-1)
	}
	err := a.err
	if a.do == fail || a.do == giveWay {
		err = e.forward.explain(&e.course, e.upstreams, a)
	}
	if e.pending.settle(a, e.reply, err, loop) {
		e.pending.anew()
	} else {
		e.pending = nil
	}
	e.free()
}

// maxKept is the longest reply, in octets, whose memory is kept for the next asyncRun.
const maxKept = 4096

func (e *asyncRun) free() {
	if e.hedged {
		return
	}
	if cap(e.reply) > maxKept {
		e.reply = nil
	}
	e.course, e.upstreamSet, e.query = course{}, upstreamSet{}, nil
	e.x.Query, e.x.Owner, e.x.Err, e.x.Local = nil, nil, nil, nil
	asyncRuns.Put(e)
}
