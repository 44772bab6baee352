package store

import (
	"sync/atomic"
	"time"
)

// Zone names one of the zones that have serials of their own.
type Zone uint8

// The zones with serials.
const (
	Internal     Zone = iota // the cluster's
	External                 // of addresses that are reached from outside
	Multicluster             // of imported services
)

// serial is a zone's serial: the unix time of the last change that concerns it, and more than any
// serial that was given out before the change. Changes between which nobody asked count as
// one. So a burst of changes does not drive the serial ahead of the clock.
type serial struct {
	// state has the serial given out last in its upper half, and below the time of a
	// change since then, or 0.
	state atomic.Uint64
}

// maxAhead bounds by how many seconds a serial runs ahead of the clock when changes come, and
// are asked for, more than once a second; then it waits. After a restart it begins with the
// clock, and what is ahead of it would look like going back. A serial that is ahead by more than twice as much comes from a
// clock that was set back: it goes on rising, as waiting for that clock might take years.
const maxAhead = 60

// changed notes a change.
func (s *serial) changed(now time.Time) {
	t := uint64(uint32(now.Unix()))
	for {
		old := s.state.Load()
		next := old&^0xffffffff | t
		if old == next || s.state.CompareAndSwap(old, next) {
			return
		}
	}
}

// read returns the serial, 0 before the first change.
func (s *serial) read() uint32 {
	for {
		old := s.state.Load()
		last, change := uint32(old>>32), uint32(old)
		if change == 0 {
			return last
		}
		next := change
		if next <= last {
			if next = last + 1; next > change+maxAhead && last < change+2*maxAhead {
				return last // the change waits for the clock
			}
		}
		if s.state.CompareAndSwap(old, uint64(next)<<32) {
			return next
		}
	}
}

// Serial returns the serial of a zone. It rises with every change that concerns the zone.
func (s *Store) Serial(z Zone) uint32 { return s.serials[z].read() }

// GoOn makes the serials of s those of before, which has been asked for the same zones: they rise on from there, and
// never fall, whichever of the two is asked. It is called before s is used.
func (s *Store) GoOn(before *Store) { s.serials = before.serials }

// Generation counts changes of all kinds. What was gathered from the store is as it was while this stays the same.
func (s *Store) Generation() uint64 { return s.generation.Load() }

// changed is called when the change can be seen.
func (s *Store) changed(z Zone) {
	now := time.Now()
	s.serials[z].changed(now)
	if z == Internal && s.outside.Load() {
		s.serials[External].changed(now)
	}
	s.generation.Add(1)
}
