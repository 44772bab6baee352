package file

import (
	"errors"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/pkg/zone"
)

// reloadSettings is when a zone's file is read again.
type reloadSettings struct {
	every   time.Duration // how often the file is looked at; 0: never
	byMtime bool          // it is read whenever it was changed, whatever its serial
}

// start begins to look at the file; stopReload ends it.
func (z *Zone) start() {
	if z.reload.every == 0 {
		return
	}
	z.stop = make(chan struct{})
	z.done.Go(func() {
		ticker := time.NewTicker(z.reload.every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				z.look()
			case <-z.stop:
				return
			}
		}
	})
}

func (z *Zone) stopReload() {
	if z.stop != nil {
		close(z.stop)
		z.done.Wait()
		z.stop = nil
	}
}

// look reads the file again if it was changed, and serves what it says if that is a zone
// with another serial. Whatever is wrong with the file, the old zone stays.
func (z *Zone) look() {
	info, err := os.Stat(z.file)
	if err != nil {
		if z.seen != (stamp{}) {
			flog.Errorf("Failed to stat zone %q in %q: %v", z.text(), z.file, err)
			z.seen = stamp{} // told once, and whatever comes there is new
		}
		return
	}
	now := stampOf(info)
	if now == z.seen {
		return
	}
	z.seen = now
	fresh, err := z.load(z.serial())
	switch {
	case errors.Is(err, errSameSerial):
	case err != nil:
		flog.Errorf("Parsing zone %q: %v", z.text(), err)
	default:
		z.live.Store(fresh)
		flog.Infof("Successfully reloaded zone %q in %q with %d SOA serial", z.text(), z.file, fresh.Serial())
	}
}

// serial is the serial that a file must not have to be of interest, -1 for any.
func (z *Zone) serial() int64 {
	live := z.live.Load()
	if live == nil || z.reload.byMtime {
		return -1
	}
	return int64(live.Serial())
}

// load reads the file.
func (z *Zone) load(serial int64) (*zone.Zone, error) {
	f, err := os.Open(z.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		z.seen = stampOf(info)
	}
	return read(f, z.origin, z.file, serial)
}
