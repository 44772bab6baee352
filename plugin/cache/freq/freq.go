// Package freq counts how often something was asked for of late. Start at Freq.Update.
package freq

import (
	"sync"
	"time"
)

// Freq is a count of hits that begins anew when there was none for a while. It may be
// used by any number of goroutines.
type Freq struct {
	mu   sync.Mutex
	last time.Time // of the last hit
	hits int
}

// New is a Freq without hits whose last one was at t.
func New(t time.Time) *Freq { return &Freq{last: t} }

// Update counts a hit at now and returns the hits so far. If the one before is longer
// ago than d, this one is the first.
func (f *Freq) Update(d time.Duration, now time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.last) > d {
		f.hits = 0
	}
	f.last = now
	f.hits++
	return f.hits
}

// Hits is the hits so far.
func (f *Freq) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// Reset sets the hits, the last of them at t.
func (f *Freq) Reset(t time.Time, hits int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.hits = t, hits
}
