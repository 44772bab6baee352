package grpcdns

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
)

// calls are those of the process that are open. The library makes a goroutine of each at once, before it is known
// whether there is room for its query: with many connections, all memory could go into goroutines.
var calls atomic.Int64

// readings are the calls of the process whose messages have not come. The library takes 64 KiB of each, so they may be
// one part of so many of the calls, but 16 at least.
var readings atomic.Int64

const (
	readingShare  = 4
	readingsLeast = 16
)

// mayRead reports whether one more call may have its message to come, where there may be most calls.
func mayRead(most int) bool {
	return most == math.MaxInt32 || readings.Load() < int64(max(most/readingShare, readingsLeast))
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
