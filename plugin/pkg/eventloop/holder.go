package eventloop

import (
	"container/list"
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
	at       *list.Element // in holders; nil when it is not
}

// holders are those that wait, in the order in which they began.
var holders struct {
	mu  sync.Mutex
	all list.List
}

func init() { OnCrowd(oldestHolder) }

// Begin enters a Holder until it is Done. end is called once at most, by whoever needs the place, if it has waited for
// longer than patience says then.
func (h *Holder) Begin(place Place, patience func() time.Duration, end func()) {
	h.place, h.since, h.patience, h.end = place, time.Now(), patience, end
	holders.mu.Lock()
	defer holders.mu.Unlock()
	h.at = holders.all.PushBack(h)
}

// Done ends what Begin began. end is not called any more, but may be at work.
func (h *Holder) Done() { h.remove() }

// remove takes h out, and reports whether it was in.
func (h *Holder) remove() bool {
	holders.mu.Lock()
	defer holders.mu.Unlock()
	if h.at == nil {
		return false
	}
	holders.all.Remove(h.at)
	h.at = nil
	return true
}

// lookAtMost is how many of those that wait are looked at.
const lookAtMost = 64

// oldestHolder is a Giver.
func oldestHolder(wanted Place) (since time.Time, end func() bool) {
	now := time.Now()
	holders.mu.Lock()
	defer holders.mu.Unlock()
	at := holders.all.Front()
	for i := 0; i < lookAtMost && at != nil; i++ {
		h := at.Value.(*Holder)
		if h.place&wanted != 0 && now.Sub(h.since) >= h.patience() {
			return h.since, h.giveWay
		}
		at = at.Next()
	}
	return time.Time{}, nil
}

// giveWay ends h, and reports whether it was still there.
func (h *Holder) giveWay() bool {
	there := h.remove()
	if there {
		h.end()
	}
	return there
}
