package policy

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Replies that are lost do not make others slow, up to a share at which they cannot be told from replies that are late.
func TestLatencyOfLostReplies(t *testing.T) {
	for _, c := range []struct {
		lost float64 // of the replies
		slow bool    // they are taken for late
	}{{0, false}, {0.05, false}, {0.2, false}, {0.28, false}, {0.5, true}, {1, true}} {
		var l Latency
		random := rand.New(rand.NewPCG(1, 2))
		for range 1000 {
			l.Note(10 * time.Millisecond)
		}
		for range 5000 {
			if random.Float64() < c.lost {
				l.Outlasted(l.Slow() + 10*time.Millisecond)
			} else {
				l.Note(10 * time.Millisecond)
			}
		}
		if slow := l.Slow() > 15*time.Millisecond; slow != c.slow {
			t.Errorf("%.0f %% of the replies are lost: the others take %v", 100*c.lost, l.Slow())
		}
	}
}

// An upstream that has become slow, and is outlasted by another one each time, is soon known to be so.
func TestLatencyOfLateReplies(t *testing.T) {
	var l Latency
	for range 1000 {
		l.Note(10 * time.Millisecond)
	}
	const takes = 150 * time.Millisecond
	outlasted := 0
	for range 4000 {
		if other := l.Slow() + 10*time.Millisecond; other < takes {
			l.Outlasted(other)
			outlasted++
		} else {
			l.Note(takes)
		}
	}
	if l.Slow() < takes || l.Smooth() < takes/2 || outlasted > 2000 {
		t.Errorf("slow %v, smooth %v, and %d times outlasted", l.Slow(), l.Smooth(), outlasted)
	}
	if outlasted == 0 {
		t.Error("nothing was late")
	}
}

// However many judge what is slow in one moment, no more is taken out of the counts than there is.
func TestLatencyJudgedByMany(t *testing.T) {
	var l Latency
	for range 20 {
		for range enough + 1 { // an odd number, and some late
			l.buckets[3].Add(1)
		}
		l.late.Add(3)
		var all sync.WaitGroup
		start := make(chan struct{})
		for range 8 {
			all.Go(func() {
				<-start
				for range 50 {
					l.judge(0)
				}
			})
		}
		close(start)
		all.Wait()
		if n, late := l.buckets[3].Load(), l.late.Load(); n > 2*enough || late > 2*enough || n == 0 {
			t.Fatalf("%d replies in a bucket, %d late", n, late)
		}
	}
}
