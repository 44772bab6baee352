package zonekeys

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// Each calls do with 0 to n-1 on so many goroutines, of which the caller's is one: signatures take processors, not
// waiting. It returns the first error, or that of ctx; then some of the work is not done.
func Each(ctx context.Context, n, workers int, do func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	work := func() {
		// Work is taken one by one: signatures of different keys take very different times.
		for ctx.Err() == nil && failed.Load() == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if err := do(i); err != nil {
				failed.CompareAndSwap(nil, &err)
			}
			eventloop.Yield() // there may be thousands of them, on all processors
		}
	}
	// No goroutine is begun that would find nothing to do.
	var others sync.WaitGroup
	for range min(workers, n) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}
