package forward

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// relay carries out the course of one query that no goroutine waits for: queries of the wire lane are parked on it. It is what
// task is for the message lane.
//
// The course is stepped by whoever ends an exchange; then it never changes any more, and any number of
// queries may read what came of it.
type relay struct {
	course
	forward   *Forward
	upstreams []*proxy.Proxy
	began     time.Time
	deadline  time.Time
	cancelled time.Time     // when nobody waits any more; zero is never
	before    wire.Exchange // what the query had been parked on before, such as another forward's relay

	x       proxy.Exchange
	query   []byte
	numbers [16]int
	room    [128]byte // for query

	reply []byte // of the last attempt that had one
	last  action // what came of it all

	wire.Ending // reply and last are settled
}

// relayOf is the relay of q that has been begun by f, nil if none has.
func (f *Forward) relayOf(q *wire.Query) *relay {
	for x := q.Awaited(); x != nil; {
		r, ok := x.(*relay)
		if !ok {
			return nil
		}
		if r.forward == f && r.asks(q) {
			return r
		}
		x = r.before
	}
	return nil
}

// asks reports whether r's query has q's question.
func (r *relay) asks(q *wire.Query) bool {
	end := wire.HeaderLen + len(q.Name())
	return len(r.query) >= end+4 && wire.EqualFold(r.query[wire.HeaderLen:end], q.Name()) &&
		binary.BigEndian.Uint16(r.query[end:]) == q.Type() && binary.BigEndian.Uint16(r.query[end+2:]) == q.Class()
}

// newRelay begins the course of q.
func (f *Forward) newRelay(q *wire.Query) *relay {
	r := &relay{forward: f, upstreams: *f.upstreams.Load(), began: time.Now(), before: q.Awaited()}
	r.course = f.newCourse(r, q.Proto == wire.TCP, r.numbers[:0], len(r.upstreams))
	r.deadline = r.began.Add(overall)
	if r.cancelled = q.Deadline(); !r.cancelled.IsZero() && r.cancelled.Before(r.deadline) {
		r.deadline = r.cancelled
	}
	r.query = q.Append(r.room[:0], 0)
	if q.EDNS().Set&(wire.HasCookie|wire.HasKeepalive|wire.HasPadding) != 0 {
		r.query, r.x.Cookie = proxy.CutHopByHop(r.query)
	}
	r.proceed(event{kind: begun}, q.Lane())
	return r
}

func (r *relay) down(up int) bool { return r.upstreams[up].Down(r.forward.maxFails) }
func (r *relay) chance(n int) int { return rand.IntN(n) }

// Took implements policy.Timed.
func (r *relay) Took(up int) time.Duration { return r.upstreams[up].Latency().Smooth() }

func (r *relay) patience(up int) time.Duration { return r.upstreams[up].Latency().Slow() }

// gone reports whether nobody waits any more.
func (r *relay) gone() bool { return !r.cancelled.IsZero() && !time.Now().Before(r.cancelled) }

// proceed takes the next step after something happened.
//
// lane is the one that the caller is in, nil if in none.
func (r *relay) proceed(ev event, lane *wire.Lane) {
	ev.at, ev.gone = time.Since(r.began), r.gone()
	a := r.step(ev)
	r.forward.note(r.upstreams, a)
	switch {
	case a.do != ask:
		r.finish(a, lane)
	case a.after > 0:
		time.AfterFunc(a.after, func() { r.ask(a, nil) })
	default:
		r.ask(a, lane)
	}
}

func (r *relay) ask(a action, lane *wire.Lane) {
	r.x.Query, r.x.Stream, r.x.Deadline, r.x.Owner, r.x.Timeout = r.query, a.stream, r.deadline, r, 0
	if a.second >= 0 {
		r.forward.race(r, r.upstreams[a.to], r.upstreams[a.second], a.slow, r.x).begin()
		return
	}
	r.upstreams[a.to].BeginIn(&r.x, lane)
}

// endRace implements racer.
func (r *relay) endRace(ra *race, lane *wire.Lane) {
	if ra.err == nil {
		r.reply = ra.reply
	}
	r.proceed(ra.event(r.gone()), lane)
}

// EndExchange implements proxy.Ender.
func (r *relay) EndExchange(x *proxy.Exchange) {
	if err := x.Err; err != nil {
		r.proceed(event{kind: failed, fault: faultOf(r.gone(), err), err: err}, nil)
		return
	}
	r.reply = x.Facts.WithoutHopByHop(append(r.reply[:0], x.Reply...))
	lane := x.Lane
	x.Reply, x.Lane = nil, nil
	r.proceed(event{kind: replied, rcode: x.Facts.Rcode, empty: x.Facts.Answers == 0, tc: x.Facts.TC}, lane)
}

// finish settles what came of the course, and resumes those that wait for it.
func (r *relay) finish(a action, lane *wire.Lane) {
	if r.forward.maxConcurrent > 0 {
		r.forward.concurrent.Add(-1)
	}
	r.last = a
	r.EndIn(lane)
}
