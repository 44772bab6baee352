package tsig

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/stamp"
)

// keyFile is a file of keys, as it was when it was read last.
type keyFile struct {
	path    string
	keys    map[string]keyring.Key
	seen    stamp.Stamp
	settles stamp.Settling
	told    string // what was wrong the last time
}

// read reads the file. If it cannot be read, all stays as it was.
func (f *keyFile) read() error {
	r, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	keys, err := parseKeyFile(r)
	if err != nil {
		return fmt.Errorf("secrets: %s: %w", f.path, err)
	}
	for name, k := range keys {
		doubt(name, k.Secret)
	}
	f.keys, f.seen = keys, stamp.Of(info)
	return nil
}

// again reads the file while the server runs.
func (f *keyFile) again() error {
	if err := stamp.NoPipe(f.path); err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	return f.read()
}

// changed reports whether the file is another one than was read. One that was changed just now may still be written, and
// the first of its keys are a file, too: again is when to come for it then.
func (f *keyFile) changed(every time.Duration) (is bool, again time.Duration) {
	switch now := stamp.At(f.path); now {
	case f.seen:
		return now == stamp.Stamp{}, 0
	case stamp.Stamp{}:
		return true, 0
	default:
		again = f.settles.Wait(now.Changed(), time.Now(), every)
		return again == 0, again
	}
}

// keeper keeps a ring as files say. One goroutine, from start to stop, looks at them.
type keeper struct {
	files []*keyFile
	ring  *keyring.Ring
	every time.Duration // how often they are looked at; 0 before start
	quit  chan struct{}
	done  sync.WaitGroup
}

func newKeeper(files []*keyFile, ring *keyring.Ring) *keeper {
	k := &keeper{files: files, ring: ring, quit: make(chan struct{})}
	k.publish()
	return k
}

// publish makes the keys of all files those of the ring. Of a name that came into two of them later, the first one counts.
func (k *keeper) publish() {
	all := map[string]keyring.Key{}
	for i := len(k.files) - 1; i >= 0; i-- {
		maps.Copy(all, k.files[i].keys)
	}
	k.ring.Set(all)
}

// start looks at the files from time to time.
func (k *keeper) start(every time.Duration) {
	k.every = every
	k.done.Go(func() {
		next := time.NewTimer(every)
		defer next.Stop()
		for {
			select {
			case <-next.C:
				next.Reset(cmp.Or(k.look(), every))
			case <-k.quit:
				return
			}
		}
	})
}

func (k *keeper) stop() {
	close(k.quit)
	k.done.Wait()
}

// look reads the files that were changed. What is wrong with one is told once; its keys stay as they are then. again is
// when to look for one that may still be written, 0 for the usual time.
func (k *keeper) look() (again time.Duration) {
	read := false
	for _, f := range k.files {
		changed, wait := f.changed(k.every)
		if again = max(again, wait); wait > 0 {
			continue
		}
		if !changed {
			f.told = ""
			continue
		}
		if err := f.again(); err != nil {
			if err.Error() != f.told {
				logger.Errorf("Keys stay as they are: %v", err)
			}
			f.told = err.Error()
			continue
		}
		f.told, read = "", true
		logger.Infof("Read %d keys from %q", len(f.keys), f.path)
	}
	if read {
		k.publish()
	}
	return again
}
