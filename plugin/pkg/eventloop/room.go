package eventloop

import (
	"slices"
	"sync"
	"sync/atomic"
)

var (
	roomMu     sync.Mutex                    // writers of roomMakers
	roomMakers atomic.Pointer[[]func() bool] // see OnCrowd
)

// OnCrowd has MakeRoom call f, for ever. f ends an exchange that has been under way for long, of those that may be
// given up for others, and reports whether there was one.
func OnCrowd(f func() bool) {
	roomMu.Lock()
	defer roomMu.Unlock()
	var all []func() bool
	if old := roomMakers.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = append(all, f)
	roomMakers.Store(&all)
}

// MakeRoom ends an exchange, so that what waits for it gives way to something that has just come. It reports whether
// there was one. It may be called where an exchange may be ended.
func MakeRoom() bool {
	all := roomMakers.Load()
	return all != nil && slices.ContainsFunc(*all, func(f func() bool) bool { return f() })
}
