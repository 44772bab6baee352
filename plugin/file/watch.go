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
	zones []*Zone
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
		again := r.every
		for _, z := range r.zones {
			if ctx.Err() != nil {
				return
			}
			if wait := z.RefreshSettled(ctx, r.every); wait > 0 {
				again = min(again, wait)
			}
		}
		r.next = time.Now().Add(again)
	}
}
