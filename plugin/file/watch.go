package file

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"
)

// watcher is the goroutine that refreshes zones, each at its ReloadInterval. There is one for all of a plugin's zones: ten thousand
// of them cost no more than their looks, and of large ones no two are read at once.
type watcher struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// watch starts a watcher. Zones without ReloadInterval are left alone.
func watch(zones []*Zone) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{cancel: cancel}
	rounds := roundsOf(zones, time.Now())
	if r := roundOfMissing(zones, time.Now()); len(r.zones) > 0 {
		rounds = append(rounds, r)
	}
	if len(rounds) > 0 {
		w.done.Go(func() { w.run(ctx, rounds) })
	}
	return w
}

// stop ends the watcher, also while it reads, and waits for that.
func (w *watcher) stop() {
	w.cancel()
	w.done.Wait()
}

// lookForMissing is how often a zone is looked for that has not been read yet, unless ReloadInterval is shorter: its file may
// come any time, from *sign* for one, and until then nobody gets an answer.
const lookForMissing = time.Second

// round is the zones that are refreshed at the same times.
type round struct {
	every   time.Duration
	next    time.Time
	early   bool // next is before its time
	missing bool // its zones leave when they have been read
	zones   []*Zone
}

// plan sets when to look next. A file that was changed just now is looked at again before the time, but once: of many
// files there may always be one.
func (r *round) plan(now time.Time, again time.Duration) {
	if r.early = again > 0 && again < r.every && !r.early; !r.early {
		again = r.every
	}
	r.next = now.Add(again)
}

func roundsOf(zones []*Zone, now time.Time) (rounds []*round) {
	for _, z := range zones {
		if z.ReloadInterval <= 0 {
			continue
		}
		i := slices.IndexFunc(rounds, func(r *round) bool { return r.every == z.ReloadInterval })
		if i < 0 {
			i = len(rounds)
			rounds = append(rounds, &round{every: z.ReloadInterval, next: now.Add(z.ReloadInterval)})
		}
		rounds[i].zones = append(rounds[i].zones, z)
	}
	return rounds
}

// roundOfMissing is the zones that have not been read yet, and are looked at less often than they are looked for.
func roundOfMissing(zones []*Zone, now time.Time) *round {
	r := &round{every: lookForMissing, next: now.Add(lookForMissing), missing: true}
	for _, z := range zones {
		if z.ReloadInterval > lookForMissing && z.Current() == nil {
			r.zones = append(r.zones, z)
		}
	}
	return r
}

// due is the zones to refresh. Of missing ones it is those whose files have come; what has been read leaves the round.
func (r *round) due() []*Zone {
	if !r.missing {
		return r.zones
	}
	var come []*Zone
	r.zones = slices.DeleteFunc(r.zones, func(z *Zone) bool { return z.Current() != nil })
	for _, z := range r.zones {
		if _, err := os.Stat(z.File()); err == nil {
			come = append(come, z)
		}
	}
	return come
}

func (w *watcher) run(ctx context.Context, rounds []*round) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		r := slices.MinFunc(rounds, func(a, b *round) int { return a.next.Compare(b.next) })
		timer.Reset(time.Until(r.next))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		again := time.Duration(0)
		for _, z := range r.due() {
			if ctx.Err() != nil {
				return
			}
			if wait := z.RefreshSettled(ctx, r.every); wait > 0 && (again == 0 || wait < again) {
				again = wait
			}
		}
		r.plan(time.Now(), again)
		if r.missing && len(r.zones) == 0 {
			rounds = slices.DeleteFunc(rounds, func(o *round) bool { return o == r })
		}
	}
}
