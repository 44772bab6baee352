package forward

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/policy"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file decides; it has no clock, no socket and no message. blockingrun.go carries out what it says.

// rules is what a directive says about every query's course. They never change.
type rules struct {
	forceTCP, preferUDP bool
	attempts            int // how many may fail; 0 is any number
	failfast            bool
	hedge               bool   // ask a second upstream if the first one is slow
	failover            rcodes // try the next upstream
	next                rcodes // hand on to the next forward
	nextOnNoData        bool
}

// rcodes is a set of return codes.
type rcodes uint32

func (s rcodes) has(rcode int) bool    { return rcode < 32 && s&(1<<rcode) != 0 }
func (s rcodes) with(rcode int) rcodes { return s | 1<<rcode }

// overall is how long a query's course may take.
const overall = 5 * time.Second

// breather is how long to wait before more attempts than two for each upstream, so that a query whose attempts are not
// limited does no more harm than it must.
const retryPause = 10 * time.Millisecond

// course is one query's way through the upstreams.
type course struct {
	rules   rules
	stream  bool  // the client's query came over TCP
	whole   bool  // the client's reply may have any length: it cannot ask again for what is truncated
	handOn  bool  // the next plugin is a forward
	order   []int // the upstreams, the first to be tried first
	view    courseView
	place   int   // in order, of the upstream to be tried next
	downs   int   // upstreams of this round that are down
	failed  int   // attempts
	asked   int   // the upstream that is asked now
	second  int   // the one that is asked, too, if asked is slow; -1 is none
	overTCP bool  // it is asked over TCP
	err     error // of the attempt that failed last
	inHand  inHand
}

// inHand is a reply of the failover list: it is the answer if nobody else replies.
type inHand struct {
	ev    event
	from  int // the upstream
	there bool
}

// courseView is what a course has to know beside what happens.
type courseView interface {
	policy.Timed
	// down reports whether an upstream is down.
	down(upstream int) bool
	// chance is a random number below n.
	chance(n int) int
	// patience is how long an upstream may take until a second one is asked, too; 0 is as long as it likes.
	patience(upstream int) time.Duration
}

// event is something that happened.
type event struct {
	kind eventKind
	at   time.Duration // since the query came
	gone bool          // nobody waits for an answer any more
	late bool          // the second upstream was asked, too: replied is about it, failed about both

	rcode     int // replied
	empty, tc bool

	failure failureKind // failed
	err     error
}

type eventKind uint8

const (
	begun eventKind = iota
	replied
	failed
)

// failureKind is whose an attempt's failure is.
type failureKind uint8

const (
	network failureKind = iota // upstream or the way there: no connection, no reply
	odd                        // a reply that was none
	local                      // the query cannot be sent at all
	ours                       // it was given up, or there was no room for it
)

// action is what is to be done: one kind, and what is to be noted beside.
type action struct {
	do     actionKind
	stream bool          // ask: over TCP
	again  bool          // ask: each upstream was tried, so without a cookie, which some firewalls drop, and with patience
	broken bool          // all upstreams are down
	to     int           // ask: the upstream
	second int           // ask: the upstream to be asked, too, if to is slow; -1 is none
	slow   time.Duration // ask: for longer than this
	after  time.Duration // ask: wait so long before
	rcode  int           // fail
	err    error         // fail
	probe  int           // an upstream whose health is in doubt, or -1
}

type actionKind uint8

const (
	ask     actionKind = iota // one upstream; replied or failed is to follow
	answer                    // the client, with the reply that came
	handOn                    // to the next forward
	fail                      // without a reply
	giveWay                   // to another query: fail, or over UDP without a word
)

// step decides what is to be done about what happened. The last step is one that does not ask.
func (c *course) step(ev event) action {
	switch ev.kind {
	case replied:
		return c.replied(ev)
	case failed:
		return c.failure(ev)
	}
	return c.try(ev)
}

func (c *course) replied(ev event) action {
	if ev.late {
		c.asked = c.second
		c.skipSecond()
	}
	switch {
	case ev.tc && (c.rules.preferUDP || c.whole) && !c.overTCP:
		c.overTCP = true
		c.second, c.inHand = -1, inHand{} // what came is in its place
		return action{do: ask, to: c.asked, stream: true, again: c.allTried(), second: -1, probe: -1}
	case c.rules.failover.has(ev.rcode) && c.left():
		from := c.asked
		if a := c.try(ev); a.do == ask {
			c.inHand = inHand{ev, from, true}
			return a
		}
	}
	return c.conclude(ev)
}

// allTried reports whether as many attempts have failed as there are upstreams.
func (c *course) allTried() bool { return c.failed >= len(c.order) }

// conclude ends the course with a reply.
func (c *course) conclude(ev event) action {
	if c.handOn && (c.rules.next.has(ev.rcode) || c.rules.nextOnNoData && ev.rcode == wire.Success && ev.empty) {
		return action{do: handOn, probe: -1}
	}
	return action{do: answer, probe: -1}
}

// skipSecond leaves out the second upstream, which was asked, if it comes next.
func (c *course) skipSecond() {
	if c.place < len(c.order) && c.order[c.place] == c.second {
		c.place++
	}
}

// spare is the upstream to be asked beside the one that is asked now: the next one that is not down, or if there is none
// the same once more, since a datagram may be lost; -1 over a connection, where nothing is.
func (c *course) spare() int {
	for i := range c.order {
		if up := c.order[(c.place+i)%len(c.order)]; up != c.asked && !c.view.down(up) {
			return up
		}
	}
	if c.overTCP {
		return -1
	}
	return c.asked
}

// left reports whether an upstream of this round that is not down is still to be asked.
func (c *course) left() bool {
	for _, up := range c.order[c.place:] {
		if !c.view.down(up) {
			return true
		}
	}
	return false
}

func (c *course) failure(ev event) action {
	if ev.failure == local {
		return action{do: fail, rcode: wire.FormErr, err: ev.err, probe: -1}
	}
	c.err = ev.err
	c.failed++
	if ev.late {
		c.failed++
		c.skipSecond()
	}
	suspect := c.asked
	var a action
	if h := &c.inHand; h.there && !c.left() {
		c.asked, a = h.from, c.conclude(h.ev)
	} else if a = c.try(ev); h.there && a.do == fail {
		c.asked, a = h.from, c.conclude(h.ev)
	}
	if ev.failure == network {
		a.probe = suspect
	}
	return a
}

// try asks the next upstream, if there is time.
func (c *course) try(ev event) action {
	a := action{do: fail, second: -1, rcode: wire.ServFail, err: c.err, probe: -1}
	if a.err == nil {
		a.err = ErrNoHealthy
	}
	if len(c.order) == 0 {
		a.err = ErrNoForward
		return a
	}
	for !ev.gone && ev.at < overall && (c.rules.attempts == 0 || c.failed < c.rules.attempts) {
		if c.place == len(c.order) {
			c.place, c.downs = 0, 0
		}
		up := c.order[c.place]
		c.place++
		if c.view.down(up) {
			if c.downs++; c.downs < len(c.order) {
				continue
			}
			a.broken = true
			if c.rules.failfast {
				return a
			}
			up = c.order[c.view.chance(len(c.order))]
		}
		a.do, a.to, a.stream, a.err = ask, up, c.rules.forceTCP || !c.rules.preferUDP && c.stream, nil
		a.again = c.allTried()
		if c.failed >= 2*len(c.order) {
			a.after = retryPause
		}
		c.asked, c.overTCP = up, a.stream
		if c.rules.hedge {
			if a.slow = c.view.patience(up); a.slow > 0 {
				a.second = c.spare()
			}
		}
		c.second = a.second
		return a
	}
	return a
}
