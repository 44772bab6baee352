package dynupdate

import (
	"sync"
	"time"
)

// notifier has secondaries notified some time after a change, once for all changes until then.
type notifier struct {
	mu    sync.Mutex
	timer *time.Timer // nil: nothing is to be told
	ended bool
}

// soon has tell called after a while, if it is not going to be anyway; ended is whether nothing is to be told any more.
func (n *notifier) soon(delay time.Duration, tell func(ended bool)) (begun bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.timer != nil || n.ended {
		return false
	}
	n.timer = time.AfterFunc(delay, func() {
		n.mu.Lock()
		n.timer = nil
		ended := n.ended
		n.mu.Unlock()
		tell(ended)
	})
	return true
}

// end has nothing told any more. It reports whether something was to be.
func (n *notifier) end() (pending bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	return n.timer != nil && n.timer.Stop()
}

// changed is called after each change of the zone.
func (d *DynUpdate) changed() {
	if d.Xfer == nil {
		return
	}
	if d.notify.soon(d.notifyDelay, func(ended bool) {
		if d.store.pending.Add(-1); !ended {
			d.Xfer.NotifyLater(d.Zone)
		}
	}) {
		d.store.pending.Add(1)
	}
}
