package secondary

import (
	"context"
	"time"

	"github.com/coredns/coredns/plugin/pkg/steady"
)

// A zone grows old while the machine is asleep, too. Timers stand still then, and so does Go's clock for what is compared;
// so times are those of a clock that goes on, and when it has leapt ahead of the timers all replicas look at it again.

// steadyNow is the time by which zones are looked at and expire.
func steadyNow() time.Time { return time.Unix(0, steady.Unix(time.Now())) }

const (
	watchEvery = 30 * time.Second // between two looks at whether time has leapt
	spread     = 30 * time.Second // in which all look at the clock then: many zones do not at once
	leastLeap  = time.Second      // by which a timer may be late
)

// watch tells all who wait for leap that time has leapt, until ctx is done. One does so for all zones: if each looked at
// the clock by itself, a calm server with many would never be idle.
func (r *rooms) watch(ctx context.Context) {
	ticks := time.NewTicker(r.watchEvery)
	defer ticks.Stop()
	begun, at := time.Now(), r.now()
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		if r.now().Sub(at)-time.Since(begun) < leastLeap {
			continue
		}
		begun, at = time.Now(), r.now()
		r.mu.Lock()
		close(r.leapt)
		r.leapt = make(chan struct{})
		r.mu.Unlock()
	}
}

// leap is closed when time leaps next.
func (r *rooms) leap() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leapt
}

// awakening is for how long primaries are asked before a zone expires whose time was over all at once. The machine was
// asleep, or its clock was set ahead and the zone is as young as it was: one that starts without a clock of its own is
// told the time when it serves already.
const awakening = 5 * time.Second

// left is the time until the zone expires, if a look takes as long as that.
func (r *replica) left(now time.Time) time.Duration {
	if d := r.plan.Expires().Sub(now); d > 0 {
		return d
	}
	return r.rooms.awakening
}

// shown is a time by the clock of the machine, which may have been set back; the zero Time is unknown.
func (r *rooms) shown(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Since(r.now()))
}
