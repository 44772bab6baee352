package recurse

import (
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// steady is the clock of the machine without its steps back. By such a step all that is kept would be kept for longer:
// records, servers that are dead, failures. A step ahead counts, for a machine that was asleep looks like one that was
// set ahead, and what it keeps is as old as that.
type steady struct {
	origin time.Time
	ahead  atomic.Int64 // nanoseconds that the clock was ahead of the monotonic one at most, since origin
}

var machine = steady{origin: time.Now()}

// at is now, a time with a monotonic reading. What it returns for one that is later is never less.
func (s *steady) at(now time.Time) store.Time {
	passed := int64(now.Sub(s.origin))
	wall := now.UnixNano() - s.origin.UnixNano()
	for {
		most := s.ahead.Load()
		if wall-passed <= most {
			return store.Time(s.origin.UnixNano() + passed + most)
		}
		if s.ahead.CompareAndSwap(most, wall-passed) {
			return store.Time(now.UnixNano())
		}
	}
}
