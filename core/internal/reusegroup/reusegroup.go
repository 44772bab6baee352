// Package reusegroup decides whether the kernel spreads the datagrams of an address over all its sockets, or gives
// them to one.
//
// A UDP address has a socket and a loop for each processor (SO_REUSEPORT). At less than the load of one processor a
// single loop serves an address cheaper than several: it takes more at a time and is woken less often.
// docs/TUNING.md says what that saves.
//
//	        the process uses more than spreadAbove, or the queue
//	        is half full, or most of what comes goes to workers
//	             ┌──────────────────────────────▶
//	consolidated                                spread
//	             ◀──────────────────────────────┘
//	        for stay, the process has used less than consolidateBelow
//
// Nothing is lost on the way: what is queued for a socket stays there, and its loop reads it. The kernel knows the
// program that chooses a socket since Linux 4.5; without it all is spread. Start at New.
package reusegroup

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	window           = 100 * time.Millisecond // after which is looked at what the process uses; one getrusage
	spreadAbove      = 0.95                   // processors that the process uses
	consolidateBelow = 0.70
	stay             = time.Second // spread, at least
	besides          = time.Minute // spread, where another process listens, too, which may be about to end
)

// Group is the sockets of one address. Its methods may be called by any goroutine; a nil Group does nothing.
type Group struct {
	steer        func(toFirst bool) bool
	used         func() time.Duration // by the process, of all processors
	consolidated atomic.Bool          // written with mu held
	taken        atomic.Int64         // queries in this window; a loop adds those of its last window
	handed       atomic.Int64         // of them, those that went to workers

	mu     sync.Mutex
	since  time.Time // spread
	looked time.Time // the begin of the window
	before time.Duration
}

// newGroup is consolidated, unless there are others at the address: the one socket that gets all would be theirs, and
// if they are about to end nobody reads it.
func newGroup(steer func(bool) bool, used func() time.Duration, others bool, now time.Time) *Group {
	g := &Group{steer: steer, used: used, since: now, looked: now, before: used()}
	if !steer(!others) {
		return nil
	}
	if others {
		g.since = now.Add(besides - stay)
	}
	g.consolidated.Store(!others)
	return g
}

// Consolidated reports whether one socket gets all.
func (g *Group) Consolidated() bool { return g != nil && g.consolidated.Load() }

// Spread has all sockets get datagrams, as where another process may go on at the address.
func (g *Group) Spread() { g.spreadAt(time.Now()) }

func (g *Group) spreadAt(now time.Time) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spread(now)
}

// spread is called with mu held.
func (g *Group) spread(now time.Time) {
	if g.consolidated.Load() && g.steer(false) {
		g.consolidated.Store(false)
		g.since = now
	}
}

// look is called when a loop has served for a window.
func (g *Group) look(now time.Time) {
	if !g.mu.TryLock() {
		return // another loop is at it
	}
	defer g.mu.Unlock()
	wall := now.Sub(g.looked)
	if wall < window {
		return
	}
	used := g.used()
	load := float64(used-g.before) / float64(wall)
	g.looked, g.before = now, used
	mostHanded := 2*g.handed.Swap(0) > g.taken.Swap(0)
	switch {
	case load > spreadAbove, mostHanded:
		g.spread(now)
	case !g.consolidated.Load() && load < consolidateBelow && now.Sub(g.since) >= stay && g.steer(true):
		g.consolidated.Store(true)
	}
}

// Loop is one socket's loop. It belongs to its goroutine.
type Loop struct {
	group         *Group
	full          func(fd uintptr) bool // whether half of the socket's queue is taken
	begun         time.Time             // the loop's own window
	taken, handed int64
}

// Served notes a batch: n queries, of which handed went to workers. all says that it was a full one, so that more
// may be queued at fd. now is the time, as the caller knows it.
func (l *Loop) Served(fd uintptr, n, handed int, all bool, now time.Time) {
	g := l.group
	if g == nil {
		return
	}
	l.taken += int64(n)
	l.handed += int64(handed)
	if all && g.consolidated.Load() && l.full(fd) {
		g.spreadAt(now)
	}
	if now.Sub(l.begun) < window {
		return
	}
	g.taken.Add(l.taken)
	g.handed.Add(l.handed)
	l.taken, l.handed, l.begun = 0, 0, now
	g.look(now)
}
