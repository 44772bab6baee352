package forward

import (
	"errors"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// race is one attempt with a second upstream in reserve: if the first one takes longer than it nearly always does, the second
// is asked, too. Whose reply is first wins, and the other one is asked no more. A failure counts only if nobody is left.
type race struct {
	forward *Forward
	owner   racer
	up      [2]*proxy.Proxy
	slow    time.Duration
	began   time.Time
	x       [2]proxy.Exchange

	mu        sync.Mutex
	timer     *time.Timer // nil if it is not needed
	under     [2]bool     // begun, and not ended
	second    bool        // the second was begun
	sent      bool        // and its Begin has returned
	cancelled bool
	over      bool // the owner knows, or is just about to

	// What came of it, for the owner.
	won   int    // who replied, or failed last
	reply []byte // good until the owner gives the race up
	late  bool   // won is the second, or both failed
	err   error
}

// racer is told the end of a race, once. It may be told within begin.
type racer interface {
	// lane is the one that the caller is in, nil if in none.
	endRace(r *race, lane *wire.Lane)
	// gone reports whether nobody waits any more.
	gone() bool
}

// errLost is the error of who was not the first.
var errLost = errors.New("another upstream was quicker")

// race is a race between two upstreams, to be begun. Both are asked as x says, whose Query it keeps until its end; slow is how long
// to wait for the first one.
func (f *Forward) race(owner racer, first, second *proxy.Proxy, slow time.Duration, x proxy.Exchange) *race {
	r := &race{forward: f, owner: owner, up: [2]*proxy.Proxy{first, second}, slow: slow, began: time.Now()}
	for i := range r.x {
		e := &r.x[i]
		e.Query, e.Stream, e.Deadline, e.Cookie, e.Owner = x.Query, x.Stream, x.Deadline, x.Cookie, r
	}
	r.x[1].Query = append([]byte(nil), x.Query...) // ids are written into them
	r.under[0] = true
	return r
}

// begin asks the first one. Only then the time of the second begins, however short it is.
func (r *race) begin() {
	r.up[0].Begin(&r.x[0])
	r.mu.Lock()
	if !r.over {
		r.timer = time.AfterFunc(r.slow, r.hedge)
	}
	r.mu.Unlock()
}

// hedge asks the second one.
func (r *race) hedge() {
	r.mu.Lock()
	if r.over || r.cancelled || !r.under[0] {
		r.mu.Unlock()
		return
	}
	r.under[1], r.second = true, true
	r.mu.Unlock()
	hedges.WithLabelValues(r.up[1].Addr()).Inc()
	r.up[1].Begin(&r.x[1])
	r.mu.Lock()
	r.sent = true
	lost := (r.over || r.cancelled) && r.under[1]
	r.mu.Unlock()
	if lost {
		r.up[1].Cancel(&r.x[1], errLost)
	}
}

// EndExchange implements proxy.Ender.
func (r *race) EndExchange(x *proxy.Exchange) {
	i := 0
	if x == &r.x[1] {
		i = 1
	}
	lane := x.Lane
	x.Lane = nil
	r.mu.Lock()
	r.under[i] = false
	if r.over {
		r.mu.Unlock()
		return
	}
	other := r.under[1-i]
	r.over = x.Err == nil || !other
	r.won, r.err = i, x.Err
	r.late = r.second && (i == 1 || x.Err != nil)
	over, stop, timer := r.over, other && (i == 1 || r.sent), r.timer
	r.mu.Unlock()

	if x.Err != nil {
		r.failed(i, x.Err)
		if !over {
			return
		}
	} else {
		r.reply = x.Facts.WithoutHopByHop(append([]byte(nil), x.Reply...))
		x.Reply = nil
	}
	if timer != nil {
		timer.Stop()
	}
	if stop {
		r.up[1-i].Cancel(&r.x[1-i], errLost)
	}
	if i == 1 && other { // it would have taken longer still
		r.up[0].Latency().Note(2 * time.Since(r.began))
	}
	r.owner.endRace(r, lane)
}

// failed lets the upstream be checked that failed; of the first one the course does so if nobody replied.
func (r *race) failed(i int, err error) {
	if r.second && faultOf(r.cancelledOrGone(), err) == network {
		r.forward.doubt(r.up[i])
	}
}

func (r *race) cancelledOrGone() bool {
	r.mu.Lock()
	cancelled := r.cancelled
	r.mu.Unlock()
	return cancelled || r.owner.gone()
}

// cancel ends the race soon, with cause as its error. Only who began it may call that.
func (r *race) cancel(cause error) {
	r.mu.Lock()
	r.cancelled = true
	under, sent := r.under, r.sent
	r.mu.Unlock()
	for i := range under {
		if under[i] && (i == 0 || sent) {
			r.up[i].Cancel(&r.x[i], cause)
		}
	}
}

// event is what the end of r is to a course.
func (r *race) event(gone bool) event {
	if r.err != nil {
		return event{kind: failed, late: r.late, fault: faultOf(gone, r.err), err: r.err}
	}
	facts := &r.x[r.won].Facts
	return event{kind: replied, late: r.late, rcode: facts.Rcode, empty: facts.Answers == 0, tc: facts.TC}
}
