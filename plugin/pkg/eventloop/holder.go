package eventloop

import (
	"sync"
	"time"
)

// Holder is what holds a place while it waits for somebody else: for an answer, or for a client that is to take one. It
// gives the place to another query where all are taken.
type Holder struct {
	place    Place
	since    time.Time
	patience func() time.Duration
	end      func()

	older, newer *Holder
	waits        bool // it is in holders
}

// holders are those that wait, in the order in which they began.
var holders struct {
	mu          sync.Mutex
	first, last *Holder
}

func init() { OnCrowd(oldestHolder) }

// Begin enters a Holder until it is Done. end is called once at most, by whoever needs the place, if it has waited for
// longer than patience says then.
func (h *Holder) Begin(place Place, patience func() time.Duration, end func()) {
	h.place, h.since, h.patience, h.end = place, time.Now(), patience, end
	holders.mu.Lock()
	defer holders.mu.Unlock()
	h.waits, h.older = true, holders.last
	if h.older != nil {
		h.older.newer = h
	} else {
		holders.first = h
	}
	holders.last = h
}

// Done ends what Begin began. end is not called any more, but may be at work.
func (h *Holder) Done() {
	holders.mu.Lock()
	defer holders.mu.Unlock()
	h.remove()
}

// remove takes h out, and reports whether it was in. holders.mu is held.
func (h *Holder) remove() bool {
	if !h.waits {
		return false
	}
	if h.older != nil {
		h.older.newer = h.newer
	} else {
		holders.first = h.newer
	}
	if h.newer != nil {
		h.newer.older = h.older
	} else {
		holders.last = h.older
	}
	h.older, h.newer, h.waits = nil, nil, false
	return true
}

// lookAtMost is how many of those that wait are looked at.
const lookAtMost = 64

// oldestHolder is a Giver.
func oldestHolder(wanted Place) (since time.Time, end func() bool) {
	now := time.Now()
	holders.mu.Lock()
	defer holders.mu.Unlock()
	h := holders.first
	for i := 0; i < lookAtMost && h != nil; i++ {
		if h.place&wanted != 0 && now.Sub(h.since) >= h.patience() {
			return h.since, h.giveWay
		}
		h = h.newer
	}
	return time.Time{}, nil
}

// giveWay ends h, and reports whether it was still there.
func (h *Holder) giveWay() bool {
	holders.mu.Lock()
	there := h.remove()
	holders.mu.Unlock()
	if there {
		h.end()
	}
	return there
}
