package file

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Refresh reads the zone's file again if it, or a file that it includes, was changed, and answers from it from then on if
// its SOA record has another serial, or with ReloadByMtime if its content is another. Whatever is wrong with the file is
// logged, and the zone stays as it was. It reports whether there is a new version. Queries do not wait for it.
func (z *Zone) Refresh(ctx context.Context) (changed bool) {
	path := z.File()
	unchanged, err := z.seen.unchanged(path)
	switch {
	case err != nil:
		z.seen.files = nil // whatever comes there is new
		z.trouble("Failed to stat zone %q in %q: %v", z.origin, path, err)
		return false
	case unchanged, z.ReloadByMtime && z.store.Load() != nil && z.seen.same(path):
		return false
	}
	serial := int64(-1)
	if v := z.store.Load(); v != nil && !z.ReloadByMtime {
		serial = int64(v.Serial())
	}
	v, seen, err := z.read(ctx, serial)
	if ctx.Err() != nil {
		return false
	}
	seen.trouble = z.seen.trouble
	z.seen = seen
	switch {
	case errors.Is(err, errSameSerial):
		z.seen.trouble = ""
		return false
	case err != nil && len(seen.files) == 0:
		z.trouble("Failed to open zone %q in %q: %v", z.origin, path, err)
		return false
	case err != nil:
		z.trouble("Parsing zone %q: %v", z.origin, err)
		return false
	}
	z.seen.trouble = ""
	z.Replace(v)
	flog.Infof("Successfully reloaded zone %q in %q with %d SOA serial", z.origin, path, v.Serial())
	return true
}

// trouble logs what is wrong with the file, unless that is what it said the last time.
func (z *Zone) trouble(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != z.seen.trouble {
		flog.Error(text)
		z.seen.trouble = text
	}
}

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
		for _, z := range r.zones {
			if ctx.Err() != nil {
				return
			}
			z.Refresh(ctx)
		}
		r.next = time.Now().Add(r.every)
	}
}
