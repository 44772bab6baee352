package zone

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Live is a zone that is replaced by newer versions while it is read. Its zero value has no version yet. Any number of
// goroutines may call Load; one at a time calls Replace.
type Live struct {
	current atomic.Pointer[Zone]
	since   atomic.Int64 // when current came, in Unix nanoseconds; 0 if none has come

	mu       sync.Mutex
	watchers []*watcher // replaced whole, never changed
}

type watcher struct{ told func(old, now *Zone) }

// Load is the version to answer from now, nil if there is none. A query is answered from one version: load once.
func (l *Live) Load() *Zone { return l.current.Load() }

// Since is when the version came that is answered from now, the zero Time if none has come.
func (l *Live) Since() time.Time {
	if n := l.since.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// Advance makes now the version that is answered from, as Replace does, but nobody is told of it, and it costs nothing:
// for a zone that grows, of which one version has all but a little of the one before.
func (l *Live) Advance(now *Zone) {
	l.current.Store(now)
	l.since.Store(time.Now().UnixNano())
}

// Replace makes now the version that is answered from, and tells all who asked for it with OnReplace, in the order
// in which they asked, on this goroutine and after queries see it. nil takes the zone away.
func (l *Live) Replace(now *Zone) {
	old := l.current.Swap(now)
	l.since.Store(time.Now().UnixNano())
	l.mu.Lock()
	watchers := l.watchers
	l.mu.Unlock()
	for _, w := range watchers {
		w.told(old, now)
	}
	if now.shares(old) {
		return // there is little to collect
	}
	size := 0
	for _, z := range [...]*Zone{old, now} {
		if z != nil {
			size += z.Size()
		}
	}
	old = nil
	collect(size) // the version before, and what is left of the making of this one
}

// OnReplace has f called with the version before, nil for the first one, and the new one, nil if the zone was taken
// away: to keep what changed (Diff) for incremental transfers, or to notify secondaries. f must not call Replace. The
// function returned ends it; a call that is under way may still run then.
func (l *Live) OnReplace(f func(old, now *Zone)) (stop func()) {
	w := &watcher{f}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = append(slices.Clip(l.watchers), w)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watchers = slices.DeleteFunc(slices.Clone(l.watchers), func(o *watcher) bool { return o == w })
	}
}

// Versions is a plugin that has zones which may leave the server: transfer sends them to secondaries, control writes
// them as master files.
type Versions interface {
	// Version is the version of a zone to send. The name is fully qualified, in lower case and in presentation form.
	// It is an error if the plugin has no such zone, or none that may be sent.
	Version(name string) (*Zone, error)
}
