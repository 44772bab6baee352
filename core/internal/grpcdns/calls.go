package grpcdns

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// calls are those of the process that are open. The library makes a goroutine of each at once, before it is known
// whether there is room for its query: with many connections, all memory could go into goroutines.
var calls atomic.Int64

// readings are the calls of the process whose messages have not come, the oldest one first. The library takes 64 KiB of
// each, so they may be one part of so many of the calls, but 16 at least.
var readings struct {
	mu          sync.Mutex
	first, last *reading
	n           int
}

const (
	readingShare  = 4
	readingsLeast = 16
	// readingTime is how old a reading is at least that gives way to a new one where there are too many. Honest clients
	// send a message right behind its header; who does not is not to keep others out.
	readingTime = 50 * time.Millisecond
)

// begin enters r, a new reading of a process that may have most calls. It reports false, and enters nothing, if there
// are too many. gave is one that is to end for it, nil for none.
func (r *reading) begin(most int) (gave *reading, ok bool) {
	readings.mu.Lock()
	defer readings.mu.Unlock()
	now := time.Now()
	if most != math.MaxInt32 && readings.n >= max(most/readingShare, readingsLeast) {
		if gave = readings.first; now.Sub(gave.since) < readingTime {
			return nil, false
		}
		gave.remove()
	}
	r.since, r.listed = now, true
	if r.before = readings.last; r.before == nil {
		readings.first = r
	} else {
		r.before.next = r
	}
	readings.last = r
	readings.n++
	return gave, true
}

// leave takes r out, if it is in there.
func (r *reading) leave() {
	readings.mu.Lock()
	defer readings.mu.Unlock()
	r.remove()
}

// remove is leave with the lock.
func (r *reading) remove() {
	if !r.listed {
		return
	}
	if r.before == nil {
		readings.first = r.next
	} else {
		r.before.next = r.next
	}
	if r.next == nil {
		readings.last = r.before
	} else {
		r.next.before = r.before
	}
	r.before, r.next, r.listed = nil, nil, false
	readings.n--
}

// calmCalls is how many calls may be open before who reads a connection lets others run first with each call. Else he
// goes on for 10 ms: of clients that make calls and take them back at once, tens of thousands would lie there before
// the goroutines have run that end them, and before the library has.
const calmCalls = 64

// enter counts a call until ctx ends, which is the call's. It reports false if there are more than most.
func enter(ctx context.Context, most int) bool {
	if most == math.MaxInt32 { // any number
		return true
	}
	n := calls.Add(1)
	if n > calmCalls {
		runtime.Gosched()
	}
	if n > int64(most) {
		calls.Add(-1)
		return false
	}
	context.AfterFunc(ctx, func() { calls.Add(-1) })
	return true
}
