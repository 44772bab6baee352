package file

import (
	"context"
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

// round is the zones that are refreshed at the same times.
type round struct {
	every time.Duration
	next  time.Time
	early bool // next is before its time
	zones []*Zone
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
		for _, z := range r.zones {
			if ctx.Err() != nil {
				return
			}
			if wait := z.RefreshSettled(ctx, r.every); wait > 0 && (again == 0 || wait < again) {
				again = wait
			}
		}
		r.plan(time.Now(), again)
	}
}
