package eventloop

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type tally struct {
	n, ended int
	took     time.Duration
}

func (t *tally) EndBatch(took time.Duration) { t.ended, t.took = t.ended+1, took }

func TestLoops(t *testing.T) {
	var counts PerLoop[tally]
	var stop atomic.Bool
	var wg sync.WaitGroup
	const loops, batches = 4, 500
	for range loops {
		wg.Go(func() {
			for range 5 { // loops come and go; what is kept for their place stays
				l := New()
				for range batches {
					l.Enter()
					c := counts.Get(l)
					l.Touch(c)
					for range 3 {
						c.n++ // the race detector would tell
					}
					l.Done(time.Second)
					l.Leave()
				}
				l.Close()
			}
		})
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for !stop.Load() {
			counts.Each(func(c *tally) {
				if c.n%3 != 0 {
					t.Error("read in the middle of a batch")
				}
			})
		}
	}()
	wg.Wait()
	stop.Store(true)
	<-read
	sum, ended := 0, 0
	counts.Each(func(c *tally) { sum += c.n; ended += c.ended })
	if sum != loops*5*batches*3 || ended != loops*5*batches {
		t.Errorf("counted %d, %d batches", sum, ended)
	}
}

// A batch may be the first to need a loop of those that serve now and then, while somebody reads what is kept for each loop.
func TestLoopOpenedInABatch(t *testing.T) {
	var counts PerLoop[tally]
	first, last := New(), New()
	defer first.Close()
	defer last.Close()
	if first.id > last.id {
		first, last = last, first
	}
	counts.Get(first)
	counts.Get(last)

	last.Enter()
	reading, read := make(chan struct{}, 2), make(chan struct{})
	go func() {
		defer close(read)
		counts.Each(func(*tally) { reading <- struct{}{} })
	}()
	<-reading
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		New().Close()
	}()
	select {
	case <-opened:
	case <-time.After(10 * time.Second):
		t.Error("no loop opens until the batch is over")
	}
	if len(reading) > 0 {
		t.Error("read in the middle of a batch")
	}
	last.Leave()
	<-read
	<-opened
}

func TestLaneIDs(t *testing.T) {
	a, b := New(), New()
	if a.id == b.id {
		t.Error("two open lanes have one id")
	}
	a.Close()
	if c := New(); c.id != a.id {
		t.Errorf("id %d, want that of the lane that was closed, %d", c.id, a.id)
	}
	if !b.TryEnter() || b.TryEnter() {
		t.Error("a lane is entered once at a time")
	}
}

// sendsLater notes whether the loop was left when it sends.
type sendsLater struct {
	lane  *Loop
	after int
}

func (s *sendsLater) Send() {
	if s.lane.TryEnter() {
		s.lane.Leave()
		s.after++
	}
}

func TestSendersAreCalledAfterTheBatch(t *testing.T) {
	l := New()
	defer l.Close()
	var senders [6]sendsLater
	for range 2 {
		l.Enter()
		for i := range senders {
			senders[i].lane = l
			l.SendLater(&senders[i])
		}
		l.Done(0)
		l.Leave()
	}
	for i := range senders {
		if senders[i].after != 2 {
			t.Errorf("sender %d sent %d times after a batch, want 2", i, senders[i].after)
		}
	}
}
