package grpcdns

import (
	"context"
	"math"
	"sync/atomic"
)

// calls are those of the process that are open. The library makes a goroutine of each at once, before it is known
// whether there is room for its query: with many connections, all memory could go into goroutines.
var calls atomic.Int64

// enter counts a call until ctx ends, which is the call's. It reports false if there are more than most.
func enter(ctx context.Context, most int) bool {
	if most == math.MaxInt32 { // any number
		return true
	}
	if calls.Add(1) > int64(most) {
		calls.Add(-1)
		return false
	}
	context.AfterFunc(ctx, func() { calls.Add(-1) })
	return true
}
