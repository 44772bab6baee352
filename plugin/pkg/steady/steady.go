// Package steady is the clock by which age is judged: that of the machine without its steps back.
//
// The monotonic clock stands still while a machine is asleep, so what is kept would be kept for longer by that. By a
// step back of the clock that tells the time it would be so, too. A step ahead counts, for a machine that was asleep
// looks like one that was set ahead, and what it keeps is as old as that.
//
// Any number of goroutines may use a Clock. Start at Passed.
package steady

import (
	"sync/atomic"
	"time"
)

// Clock counts from an origin.
type Clock struct {
	origin time.Time
	began  int64        // the origin in nanoseconds since 1970
	ahead  atomic.Int64 // nanoseconds that the clock was ahead of the monotonic one at most, since origin
}

// NewClock is a clock that counts from origin, a time with a monotonic reading.
func NewClock(origin time.Time) *Clock { return &Clock{origin: origin, began: origin.UnixNano()} }

var machine = NewClock(time.Now())

// Passed is the time from a fixed origin to now, by the clock of the process.
func Passed(now time.Time) time.Duration { return machine.Passed(now) }

// Unix is now in nanoseconds since 1970, by the clock of the process.
func Unix(now time.Time) int64 { return machine.began + int64(machine.Passed(now)) }

// Passed is the time from the origin to now, which has a monotonic reading. For one that is later it is never less.
func (c *Clock) Passed(now time.Time) time.Duration {
	passed := int64(now.Sub(c.origin))
	ahead, most := now.UnixNano()-c.began-passed, c.ahead.Load()
	if ahead > most {
		most = c.set(ahead)
	}
	return time.Duration(passed + most)
}

// set notes that the clock is ahead by so much, and returns by how much it was at most.
func (c *Clock) set(ahead int64) (most int64) {
	for {
		most = c.ahead.Load()
		if ahead <= most {
			return most
		}
		if c.ahead.CompareAndSwap(most, ahead) {
			return ahead
		}
	}
}
