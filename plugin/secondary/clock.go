package secondary

import (
	"math/rand/v2"
	"time"

	"github.com/coredns/coredns/plugin/pkg/steady"
)

// A zone grows old while the machine is asleep, too. Timers stand still then, and so does Go's clock for what is compared;
// so times are those of a clock that goes on, and no timer is believed for long.

// steadyNow is the time by which zones are looked at and expire.
func steadyNow() time.Time { return time.Unix(0, steady.Unix(time.Now())) }

// longestNap is for how long a timer is believed at most.
const longestNap = time.Minute

// nap is for how long to wait for what is due after d: many zones do not look at the clock at once.
func (r *rooms) nap(d time.Duration) time.Duration {
	return min(d, r.longestNap/2+rand.N(r.longestNap/2))
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
