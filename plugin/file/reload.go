package file

import (
	"context"
	"errors"
	"fmt"

	"github.com/coredns/coredns/plugin/transfer"
)

// Refresh is Reread that logs what came of it.
func (z *Zone) Refresh(ctx context.Context) (changed bool) {
	changed, err := z.Reread(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		flog.Error(err.Error())
	case changed:
		flog.Infof("Successfully reloaded zone %q in %q with %d SOA serial", z.origin, z.File(), z.store.Load().Serial())
	}
	return changed
}

// Reread reads the zone's file again if it, or a file that it includes, was changed, and answers from it from then on if
// its SOA record has another serial, or with ReloadByMtime if its content is another. It reports whether there is a new
// version. Whatever is wrong with the file, the zone stays as it was; the error is told once, not again while the file stays
// as it is. Queries do not wait for it. If ctx is cancelled, reading ends, and the file is looked at anew the next time.
func (z *Zone) Reread(ctx context.Context) (changed bool, err error) {
	path := z.File()
	unchanged, err := z.seen.unchanged(path)
	switch {
	case err != nil:
		z.seen.files = nil // whatever comes there is new
		return false, z.trouble("Failed to stat zone %q in %q: %w", z.origin, path, err)
	case unchanged, z.ReloadByMtime && z.store.Load() != nil && z.seen.same(path):
		return false, nil
	}
	serial := int64(-1)
	if v := z.store.Load(); v != nil && !z.ReloadByMtime {
		serial = int64(v.Serial())
	}
	v, seen, err := z.read(ctx, serial)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	seen.trouble = z.seen.trouble
	z.seen = seen
	switch {
	case err == nil:
	case errors.Is(err, errSameSerial):
		z.seen.trouble = ""
		return false, nil
	case len(seen.files) == 0:
		return false, z.trouble("Failed to open zone %q in %q: %w", z.origin, path, err)
	default:
		return false, z.trouble("Parsing zone %q: %w", z.origin, err)
	}
	z.seen.trouble = ""
	z.Replace(v)
	return true, nil
}

// trouble is what is wrong with the file, nil if that is what it was the last time.
func (z *Zone) trouble(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if err.Error() == z.seen.trouble {
		return nil
	}
	z.seen.trouble = err.Error()
	return err
}

// Reload starts to look at the zone's file as often as ReloadInterval says, until OnShutdown. t, which may be nil, is told of
// changes. It is for Zones that no plugin of ours looks after.
func (z *Zone) Reload(t *transfer.Transfer) error {
	if err := z.OnShutdown(); err != nil {
		return err
	}
	announced, w := z.Announce(t), watch([]*Zone{z})
	z.Lock()
	defer z.Unlock()
	z.ending = func() {
		w.stop()
		announced()
	}
	return nil
}

// OnShutdown ends what Reload started.
func (z *Zone) OnShutdown() error {
	z.Lock()
	end := z.ending
	z.ending = nil
	z.Unlock()
	if end != nil {
		end()
	}
	return nil
}
