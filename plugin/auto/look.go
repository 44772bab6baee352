package auto

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/transfer"
)

// friends is the plugins of the server block that are told of zones, and what all copies of an Auto share. Plugins that
// are not there are nil.
type friends struct {
	looks sync.Mutex // one at a time, of all folders: a file that comes to several at once is served from one of them

	transfer *transfer.Transfer
	metrics  *metrics.Metrics
}

// looker is what a folder's looks remember of each other.
type looker struct {
	zones  map[string]*entry     // that are served from the folder
	broken map[string]*file.Zone // that could not be read so far
	told   map[string]bool       // warnings about what is still so
}

// entry is a zone that is served.
type entry struct {
	zone     *file.Zone
	announce func() // ends telling of its changes
}

// look finds out which zone files are there now. New ones are read and served, those that have changed are read again, and
// what has no file any more is removed. Who comes every so often is told when to come again, 0 for the usual time, as a file was
// changed just now and is left alone; if every is 0, it is read, too.
func (a *Auto) look(ctx context.Context, f *folder, every time.Duration) (again time.Duration) {
	a.friends.looks.Lock()
	defer a.friends.looks.Unlock()
	l := f.list()
	changes := map[string]*file.Zone{}
	defer func() {
		f.warn(l.warnings)
		if len(changes) > 0 {
			a.put(changes)
			a.count(changes)
		}
	}()
	for origin, e := range f.zones {
		if _, ok := l.files[origin]; !ok && l.knows(e.zone.File()) {
			a.drop(f, origin)
			changes[origin] = nil
		}
	}
	maps.DeleteFunc(f.broken, func(origin string, _ *file.Zone) bool { return l.files[origin] == "" })
	settle := func(wait time.Duration) {
		if wait > 0 && (again == 0 || wait < again) {
			again = wait
		}
	}
	for _, origin := range slices.Sorted(maps.Keys(l.files)) {
		if ctx.Err() != nil {
			return 0
		}
		path := l.files[origin]
		if e := f.zones[origin]; e != nil {
			e.zone.SetFile(path)
			settle(e.zone.RefreshSettled(ctx, every))
		} else if other := a.Zones.Zones(origin); other != nil {
			l.warn("Multiple zone files match origin %q: using %q instead of %q", origin, other.File(), path)
		} else if z, wait := f.read(ctx, origin, path, every); z != nil {
			a.take(f, origin, z)
			changes[origin] = z
		} else {
			settle(wait)
		}
	}
	return again
}

// warn logs what it did not log the last time.
func (f *folder) warn(warnings []string) {
	told := map[string]bool{}
	for _, w := range warnings {
		if !f.told[w] {
			alog.Warning(w)
		}
		told[w] = true
	}
	f.told = told
}

// read reads a zone that is not served so far. It is nil if that fails, or if it should be tried again after some time.
func (f *folder) read(ctx context.Context, origin, path string, every time.Duration) (*file.Zone, time.Duration) {
	z := f.broken[origin]
	if z == nil {
		z = file.NewZone(origin, path)
		z.ReloadInterval, z.ReloadByMtime, z.NSEC3, z.ZONEMD = f.every, f.byMtime, f.nsec3, f.zonemd
	}
	z.SetFile(path)
	changed, again, err := z.RereadSettled(ctx, every)
	if changed {
		delete(f.broken, origin)
		return z, 0
	}
	if err != nil && ctx.Err() == nil {
		alog.Warningf("Parse zone `%s': %v", origin, errors.Unwrap(err))
	}
	if f.broken == nil {
		f.broken = map[string]*file.Zone{}
	}
	f.broken[origin] = z
	return nil, again
}

// take begins with a zone.
func (a *Auto) take(f *folder, origin string, z *file.Zone) {
	if f.zones == nil {
		f.zones = map[string]*entry{}
	}
	f.zones[origin] = &entry{z, z.Announce(a.friends.transfer)}
	alog.Infof("Inserting zone `%s' from: %s", origin, z.File())
}

// drop ends with a zone.
func (a *Auto) drop(f *folder, origin string) {
	e := f.zones[origin]
	delete(f.zones, origin)
	e.announce()
	a.friends.transfer.Changed(origin, e.zone.Current(), nil)
	alog.Infof("Deleting zone `%s'", origin)
}

// count has queries counted under the zones that there are now, and no more under those that are gone, which are nil.
func (a *Auto) count(changes map[string]*file.Zone) {
	if a.friends.metrics == nil {
		return
	}
	var come, gone []string
	for _, origin := range slices.Sorted(maps.Keys(changes)) {
		if changes[origin] == nil {
			gone = append(gone, origin)
		} else {
			come = append(come, origin)
		}
	}
	a.friends.metrics.ChangeZones(come, gone)
}

// forget ends with all zones of a folder, without taking them away.
func (a *Auto) forget(f *folder) {
	a.friends.looks.Lock()
	defer a.friends.looks.Unlock()
	gone := map[string]*file.Zone{}
	for origin, e := range f.zones {
		e.announce()
		gone[origin] = nil
	}
	a.count(gone)
}

// Walk looks at all folders now.
func (a Auto) Walk() error {
	for _, f := range a.folders {
		a.look(context.Background(), f, 0)
	}
	return nil
}

// Notify notifies the secondaries of all zones, and waits for them.
func (a Auto) Notify() error {
	var errs []error
	for _, name := range a.Names() {
		errs = append(errs, a.friends.transfer.Notify(name))
	}
	return errors.Join(errs...)
}

// watcher is the goroutines that look at folders.
type watcher struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// watch begins to look at each folder in its time.
func (a *Auto) watch() *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{cancel: cancel}
	for _, f := range a.folders {
		if f.every == 0 {
			continue
		}
		w.done.Go(func() {
			timer := time.NewTimer(f.every)
			defer timer.Stop()
			early := false
			for {
				select {
				case <-timer.C:
					again := a.look(ctx, f, f.every)
					// Before the time once only: of many files there may always be one that was changed just now.
					if early = again > 0 && !early; !early {
						again = f.every
					}
					timer.Reset(again)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return w
}

// stop ends all looks, also one that is under way, and waits for that.
func (w *watcher) stop() {
	w.cancel()
	w.done.Wait()
}
