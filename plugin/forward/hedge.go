package forward

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/proxy"
)

// hedge is one attempt with a second upstream in reserve: if the first one takes longer than it nearly always does, the second
// is asked, too. Whose reply is first wins, and the other one is asked no more. A failure counts only if nobody is left.
type hedge struct {
	forward *Forward
	owner   hedger
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
	over      bool          // the owner knows, or is just about to
	quiet     chan struct{} // closed when it is over, and nothing is under way

	// What came of it, for the owner.
	won   int    // who replied, or failed last
	reply []byte // good until the owner gives the hedge up
	late  bool   // won is the second, or both failed
	err   error
}

// hedger is told the end of a hedge, once. It may be told within begin.
type hedger interface {
	// loop is the one that the caller is in, nil if in none.
	hedgeEnded(r *hedge, loop *eventloop.Loop)
	// gone reports whether nobody waits any more.
	gone() bool
}

// errLost is the error of who was not the first.
var errLost = errors.New("another upstream was quicker")

// newHedge is a hedged request to two upstreams, to be begun. Both are asked as x says; slow is how long to wait for the first one.
func (f *Forward) newHedge(owner hedger, first, second *proxy.Proxy, slow time.Duration, x proxy.Exchange) *hedge {
	r := &hedge{forward: f, owner: owner, up: [2]*proxy.Proxy{first, second}, slow: slow, began: time.Now(), quiet: make(chan struct{})}
	for i := range r.x {
		e := &r.x[i]
		e.Stream, e.Deadline, e.Cookie, e.Final, e.GivesWay, e.Owner = x.Stream, x.Deadline, x.Cookie, x.Final, x.GivesWay, r
	}
	// Ids and letters are written into queries, into the loser's perhaps when the owner has gone on.
	n, both := len(x.Query), slices.Concat(x.Query, x.Query)
	r.x[0].Query, r.x[1].Query = both[:n:n], both[n:]
	r.under[0] = true
	return r
}

// begin asks the first one. Only then the time of the second begins, however short it is.
func (h *hedge) begin() {
	h.up[0].Begin(&h.x[0])
	h.mu.Lock()
	if !h.over {
		h.timer = time.AfterFunc(h.slow, h.askSecond)
	}
	h.mu.Unlock()
}

// hedge asks the second one.
func (h *hedge) askSecond() {
	h.mu.Lock()
	if h.over || h.cancelled || !h.under[0] {
		h.mu.Unlock()
		return
	}
	h.under[1], h.second = true, true
	h.mu.Unlock()
	hedges.WithLabelValues(h.up[1].Addr()).Inc()
	h.up[1].Begin(&h.x[1])
	h.mu.Lock()
	h.sent = true
	lost := (h.over || h.cancelled) && h.under[1]
	h.mu.Unlock()
	if lost {
		h.up[1].Cancel(&h.x[1], errLost)
	}
}

// EndExchange implements proxy.Ender.
func (h *hedge) EndExchange(x *proxy.Exchange) {
	i := 0
	if x == &h.x[1] {
		i = 1
	}
	loop := x.Loop
	x.Loop = nil
	h.mu.Lock()
	h.under[i] = false
	if h.over {
		close(h.quiet)
		h.mu.Unlock()
		return
	}
	other := h.under[1-i]
	h.over = x.Err == nil || !other
	h.won, h.err = i, x.Err
	h.late = h.second && (i == 1 || x.Err != nil)
	over, stop, timer := h.over, other && (i == 1 || h.sent), h.timer
	if over && !other {
		close(h.quiet)
	}
	h.mu.Unlock()

	if x.Err != nil {
		h.failed(i, x.Err)
		if !over {
			return
		}
	} else {
		h.reply = x.Facts.WithoutHopByHop(append([]byte(nil), x.Reply...))
		x.Reply = nil
	}
	if timer != nil {
		timer.Stop()
	}
	if stop {
		h.up[1-i].Cancel(&h.x[1-i], errLost)
	}
	if i == 1 && other {
		h.up[0].Latency().Outlasted(time.Since(h.began))
	}
	h.owner.hedgeEnded(h, loop)
}

// failed lets the upstream be checked that failed; of the first one the course does so if nobody replied.
func (h *hedge) failed(i int, err error) {
	if h.second && failureOf(h.cancelledOrGone(), err) == network {
		h.forward.doubt(h.up[i])
	}
}

func (h *hedge) cancelledOrGone() bool {
	h.mu.Lock()
	cancelled := h.cancelled
	h.mu.Unlock()
	return cancelled || h.owner.gone()
}

// cancel ends the hedge soon, with cause as its error. Only who began it may call that.
func (h *hedge) cancel(cause error) {
	h.mu.Lock()
	h.cancelled = true
	under, sent := h.under, h.sent
	h.mu.Unlock()
	for i := range under {
		if under[i] && (i == 0 || sent) {
			h.up[i].Cancel(&h.x[i], cause)
		}
	}
}

// settleTime is how long who has lost is waited for, to be told of: he has been given up, and ends at once unless he is
// still connecting.
const settleTime = 10 * time.Millisecond

// attempts is those of h that were sent and have ended, when it is over.
func (h *hedge) attempts() (all []int) {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-h.quiet:
	case <-timer.C:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, begun := range [...]bool{true, h.second} {
		if x := &h.x[i]; begun && !h.under[i] && (i == h.won || x.Local != nil) {
			all = append(all, i)
		}
	}
	return all
}

// event is what the end of h is to a course.
func (h *hedge) event(gone bool) event {
	if h.err != nil {
		return event{kind: failed, late: h.late, failure: failureOf(gone, h.err), err: h.err}
	}
	facts := &h.x[h.won].Facts
	return event{kind: replied, late: h.late, rcode: facts.Rcode, empty: facts.Answers == 0, tc: facts.TC}
}
