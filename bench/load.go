package main

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	lossAfter = time.Second            // a query unanswered for so long is lost
	lookEvery = 100 * time.Millisecond // how often a client looks for lost queries
)

// load is what a server is put under for one round.
type load struct {
	port    int
	tcp     bool
	clients int // sockets or connections, each with a goroutine
	window  int // queries each client keeps in flight; at most maxWindow
	rate    int // queries a second of all clients; 0 is as fast as answers come
	length  time.Duration
	limit   int // queries of each client, 0 is until length is over
	queries func(client int) source
}

// client is one socket of the load.
type client struct {
	load
	src    source
	flight *flight
	tally  tally
	start  time.Time
	looked time.Time // when lost queries were looked for
	landed time.Time // when the last response came
}

// run puts the load on the server and returns what all clients counted, and how long it
// took until the last response came, which is not less than the length of an unlimited load.
func (l load) run() (tally, time.Duration, error) {
	var (
		all  tally
		wg   sync.WaitGroup
		errs = make([]error, l.clients)
		cs   = make([]*client, l.clients)
	)
	start := time.Now()
	for i := range cs {
		cs[i] = &client{load: l, src: l.queries(i), flight: newFlight(l.window), start: start, looked: start, landed: start}
		wg.Go(func() {
			if l.tcp {
				errs[i] = cs[i].runTCP()
			} else {
				errs[i] = cs[i].runUDP()
			}
		})
	}
	wg.Wait()
	var took time.Duration
	if l.limit == 0 {
		took = l.length
	}
	for _, c := range cs {
		all.add(&c.tally)
		took = max(took, c.landed.Sub(start))
	}
	if err := errors.Join(errs...); err != nil {
		return all, took, fmt.Errorf("load on port %d: %w", l.port, err)
	}
	return all, took, nil
}

// quota returns how many queries may be sent now: free slots, and not more than the
// rate and the limit allow.
func (c *client) quota(now time.Time) int {
	n := len(c.flight.free)
	if c.over(now) {
		return 0
	}
	if c.limit > 0 {
		n = min(n, c.limit-c.tally.sent)
	}
	if c.rate > 0 {
		due := int(now.Sub(c.start).Seconds()*float64(c.rate)/float64(c.clients)) + 1
		n = min(n, due-c.tally.sent)
	}
	return max(n, 0)
}

// over says whether the client sends no more.
func (c *client) over(now time.Time) bool {
	return now.Sub(c.start) >= c.length || c.limit > 0 && c.tally.sent >= c.limit
}

// wake returns when a client that waits for responses has something else to do.
func (c *client) wake(now time.Time) time.Time {
	at := c.looked.Add(lookEvery)
	if c.rate > 0 && !c.over(now) && len(c.flight.free) > 0 {
		step := float64(c.clients) / float64(c.rate) * float64(time.Second)
		if due := c.start.Add(time.Duration(float64(c.tally.sent) * step)); due.Before(at) {
			at = due
		}
	}
	return at
}

// land counts the response msg; what answers no query in flight is passed over.
func (c *client) land(msg []byte, now time.Time) {
	r, ok := readReply(msg)
	if !ok {
		return
	}
	s, ok := c.flight.land(r.id)
	if !ok {
		return
	}
	c.tally.count(r, s)
	c.landed = now
	if c.rate > 0 {
		c.tally.waits = append(c.tally.waits, now.Sub(s.sent))
	}
}

// look gives up queries that are lost, every lookEvery.
func (c *client) look(now time.Time) {
	if now.Sub(c.looked) >= lookEvery {
		c.looked = now
		c.tally.lost += c.flight.expire(now.Add(-lossAfter))
	}
}

// next appends the next query, with its id, to b.
func (c *client) next(b []byte, now time.Time) []byte {
	msg, want := c.src.next()
	id := c.flight.launch(want, now)
	c.tally.sent++
	start := len(b)
	b = append(b, msg...)
	b[start], b[start+1] = byte(id>>8), byte(id)
	return b
}
