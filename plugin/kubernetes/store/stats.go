package store

import (
	"sync/atomic"
	"time"
)

// stats are counted by the reflectors.
type stats struct {
	events, gaps atomic.Uint64
	last         atomic.Int64 // unix nanoseconds
}

// Stats says how the store has fared with the API.
type Stats struct {
	// Events are the changes that were told of; those of the first lists do not count.
	Events uint64
	// Gaps are how often changes may have been missed, so that all had to be read again.
	Gaps uint64
	// LastEvent is when the API was last heard of any watch, be it a change or a sign that there was none.
	// It is zero if never.
	LastEvent time.Time
}

// Stats returns the figures as of now.
func (s *Store) Stats() Stats {
	st := Stats{Events: s.stats.events.Load(), Gaps: s.stats.gaps.Load()}
	if last := s.stats.last.Load(); last != 0 {
		st.LastEvent = time.Unix(0, last)
	}
	return st
}

func (s *stats) heard(now time.Time) { s.last.Store(now.UnixNano()) }
