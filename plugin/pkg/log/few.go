package log

import (
	"sync"
	"sync/atomic"
	"time"
)

// Few lets ten lines a second through: for what anybody can cause. The zero Few is ready; any number of goroutines may
// use it.
type Few struct {
	mu     sync.Mutex
	second int64
	told   int
}

const fewLines = 10

// May reports whether another line is to be logged in this second.
func (f *Few) May() bool { return f.mayAt(time.Now().Unix()) }

func (f *Few) mayAt(now int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now != f.second {
		f.second, f.told = now, 0
	}
	f.told++
	return f.told <= fewLines
}

// Seldom lets one line a minute through: for what may go on for long, and is no news then. The zero Seldom is ready;
// any number of goroutines may use it.
type Seldom struct{ next atomic.Int64 }

const seldom = 60

// May reports whether another line is to be logged now. When the clock is set back, it is as if none had been.
func (s *Seldom) May() bool { return s.mayAt(time.Now().Unix()) }

func (s *Seldom) mayAt(now int64) bool {
	next := s.next.Load()
	return (now >= next || next > now+seldom) && s.next.CompareAndSwap(next, now+seldom)
}
