package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/coredns/coredns/plugin/transfer"
)

// Refresh is Reread that logs what came of it.
func (z *Zone) Refresh(ctx context.Context) (changed bool) {
	changed, err := z.Reread(ctx)
	z.tell(ctx, changed, err)
	return changed
}

// RefreshSettled is RereadSettled that logs what came of it.
func (z *Zone) RefreshSettled(ctx context.Context, every time.Duration) (again time.Duration) {
	changed, again, err := z.RereadSettled(ctx, every)
	z.tell(ctx, changed, err)
	return again
}

func (z *Zone) tell(ctx context.Context, changed bool, err error) {
	switch {
	case err != nil && ctx.Err() == nil:
		flog.Error(err.Error())
	case changed:
		flog.Infof("Successfully reloaded zone %q in %q with %d SOA serial", z.origin, z.File(), z.store.Load().Serial())
	}
}

// Reread reads the zone's file again if it, or a file that it includes, was changed, and answers from it from then on if
// its SOA record has another serial, or with ReloadByMtime if its content is another. It reports whether there is a new
// version. Whatever is wrong with the file, the zone stays as it was; the error is told once, not again while the file stays
// as it is. Queries do not wait for it. If ctx is cancelled, reading ends, and the file is looked at anew the next time.
//
// What was read before all of it was there, as its end shows, is read again when more has come, also with the same serial.
func (z *Zone) Reread(ctx context.Context) (changed bool, err error) {
	changed, _, err = z.RereadSettled(ctx, 0)
	return changed, err
}

// RereadSettled is Reread for who comes every so often. A file that was changed just now is left alone, as it may still be
// written: again is when it should be looked at in its stead, 0 for the usual time. If every is 0, it is read at once.
func (z *Zone) RereadSettled(ctx context.Context, every time.Duration) (changed bool, again time.Duration, err error) {
	path := z.File()
	unchanged, at, err := z.seen.unchanged(path)
	switch {
	case err != nil:
		z.seen.files = nil // whatever comes there is new
		return false, 0, z.missing(path, err)
	case unchanged:
		return false, 0, nil
	}
	if again := z.settles.Wait(at, time.Now(), every); again > 0 {
		return false, again, nil
	}
	if z.ReloadByMtime && z.store.Load() != nil && z.seen.same(path) {
		return false, 0, nil
	}
	changed, err = z.readNew(ctx, path)
	return changed, 0, err
}

// readNew reads the file, and answers from it if it is another version.
func (z *Zone) readNew(ctx context.Context, path string) (changed bool, err error) {
	serial, grown := int64(-1), z.seen.grown(path)
	if v := z.store.Load(); v != nil && !z.ReloadByMtime && !grown {
		serial = int64(v.Serial())
	}
	v, seen, err := z.read(ctx, serial, openFile)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	seen.trouble = z.seen.trouble
	if err != nil {
		seen.cut = z.seen.cut
	}
	z.seen = seen
	switch {
	case err == nil:
	case errors.Is(err, errSameSerial):
		z.good()
		return false, nil
	case len(seen.files) == 0:
		return false, z.trouble("Failed to open zone %q in %q: %w", z.origin, path, err)
	default:
		return false, z.trouble("Parsing zone %q: %w", z.origin, err)
	}
	z.good()
	if old := z.store.Load(); grown && old != nil && old.Serial() == v.Serial() {
		flog.Warningf("Zone %q in %q: more has come of the file with %d SOA serial; secondaries may have less", z.origin, path, v.Serial())
	}
	z.Replace(v)
	return true, nil
}

// missing is trouble with a file that cannot be looked at. Without ReloadByMtime it is told as by who opens a file without a
// look at it before, as people's alerts expect it.
func (z *Zone) missing(path string, err error) error {
	var stat *fs.PathError
	if z.ReloadByMtime || !errors.As(err, &stat) {
		return z.trouble("Failed to stat zone %q in %q: %w", z.origin, path, err)
	}
	return z.trouble("Failed to open zone %q in %q: %w", z.origin, path, &fs.PathError{Op: "open", Path: stat.Path, Err: stat.Err})
}

// trouble is what is wrong with the file, nil if that is what it was the last time.
func (z *Zone) trouble(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	z.Looked(err)
	if err.Error() == z.seen.trouble {
		return nil
	}
	z.seen.trouble = err.Error()
	return err
}

// good says that nothing is wrong with it.
func (z *Zone) good() {
	z.seen.trouble = ""
	z.Looked(nil)
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
