package secondary

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// A disk may be slow, or not answer at all, as one in the network may. Zones are served and followed all the same: run
// waits a moment only for what is stored. A few are stored in a folder at a time, as each takes a thread of the process
// for as long as the disk does not answer.

// storing is one time that a zone is stored.
type storing struct {
	at      time.Time  // when a primary confirmed the zone
	useless bool       // what is stored cannot be served
	anew    bool       // the file is written; else it gets another time only, if it takes that
	done    chan error // has what became of it; anew is known then
}

// folder is where zones are stored. Each may be on a disk of its own.
type folder struct {
	stores   chan struct{} // has what is stored there at once
	late     atomic.Bool   // it was told that the disk does not answer
	answered atomic.Int64  // when something was stored last, in seconds of Unix: many zones wait for each other

	// filing is held while a file takes the place of another one, and while one is removed: what a replica that is gone
	// was writing must not take the place of what the next one of its name has stored, nor be left behind.
	filing sync.Mutex

	mu     sync.Mutex      // not held while the disk is waited for
	doomed map[string]bool // files that are to be removed, by path
}

// mostStores is how many zones are stored in a folder at once.
const mostStores = 8

// folders are those of the process, by path.
var folders sync.Map

// folderAt is the folder at a path, which may be told in more than one way.
func folderAt(path string) *folder {
	f, _ := folders.LoadOrStore(filepath.Clean(path), &folder{stores: make(chan struct{}, mostStores), doomed: map[string]bool{}})
	return f.(*folder)
}

// folder is where the zone is stored.
func (r *replica) folder() *folder { return folderAt(r.source.storage) }

// diskPatience is how long run waits for a zone to be stored. Only tests change it.
var diskPatience = 5 * time.Second

// keep stores the zone if it is another one than is stored, or else notes that it is still right.
func (r *replica) keep(changed bool) {
	if r.source.storage == "" || r.gone.Load() || r.isInherited() {
		return
	}
	r.unstored, r.held = r.unstored || changed, !r.rooms.serves()
	if r.held || r.storing != nil { // run comes back to it when that is over
		return
	}
	s := &storing{time.Now(), r.useless, r.unstored || r.note != r.source.note(), make(chan error, 1)}
	r.storing, r.unstored = s, false
	go r.file(s)
	r.await()
}

// file does what s says. It is not run that calls it.
func (r *replica) file(s *storing) {
	f := r.folder()
	f.stores <- struct{}{}
	var err error
	if s.anew = s.anew || r.gone.Load() || os.Chtimes(r.path(), time.Time{}, s.at) != nil; s.anew {
		err = r.store(s)
	}
	f.answered.Store(time.Now().Unix())
	<-f.stores
	s.done <- err
}

// await waits a moment for what is being stored, and takes in what became of it. It reports whether nothing is being
// stored any more.
func (r *replica) await() bool {
	if r.storing == nil {
		return true
	}
	f := r.folder()
	select {
	case err := <-r.storing.done:
		f.late.Store(false)
		r.stored(err)
		return true
	case <-time.After(diskPatience):
		if time.Since(time.Unix(f.answered.Load(), 0)) >= diskPatience && !f.late.Swap(true) {
			slog.Warningf("Zone %s is not stored yet: the disk does not answer", r.name())
		}
		return false
	}
}

// stored takes in what became of what was being stored.
func (r *replica) stored(err error) {
	if errors.Is(err, errInherited) { // should nobody take its place after all, it is stored with the next look
		r.unstored, r.storing = true, nil
		return
	}
	if err != nil {
		r.unstored = true
	} else if s := r.storing; s.anew {
		r.note, r.useless = r.source.note(), r.useless && !s.useless
	}
	r.storing = nil
	r.tell(err)
}

// outcome has what becomes of what is being stored; nil if nothing is.
func (r *replica) outcome() <-chan error {
	if r.storing == nil {
		return nil
	}
	return r.storing.done
}

// goOn takes in what became of what was being stored, and stores what has come meanwhile.
func (r *replica) goOn(err error) {
	if r.stored(err); err == nil && r.unstored {
		r.keep(false)
	}
}

// storeLast stores what is not stored yet, if that can be done in a moment.
func (r *replica) storeLast() {
	if r.await() && r.unstored {
		r.keep(false)
	}
}

// doom has the file at a path removed by clear, unless another replica stores a zone there before.
func (f *folder) doom(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doomed[path] = true
}

// dooms reports whether the file at a path is to be removed.
func (f *folder) dooms(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.doomed[path]
}

// took notes that a replica has stored its zone: the file that was to be removed is another one now. It still is to be
// removed if the replica was dismissed while its file took its place. filing is held.
func (f *folder) took(r *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !r.gone.Load() { // else its file is doomed, or will be
		delete(f.doomed, r.path())
	}
}

// removed notes that there is no file at a path any more. filing is held.
func (f *folder) removed(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.doomed, path)
}

// anyDoomed is a path of a file that is to be removed, "" if there is none.
func (f *folder) anyDoomed() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for path := range f.doomed {
		return path
	}
	return ""
}

// clear removes what is to be removed, and makes that durable: else a crash could bring back what a zone of that name
// had.
func (f *folder) clear() {
	f.filing.Lock()
	defer f.filing.Unlock()
	last := ""
	for path := f.anyDoomed(); path != ""; path = f.anyDoomed() {
		last = path
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			slog.Warningf("Files of zones that are kept no more: %v", err)
		}
		f.removed(path)
	}
	if last == "" {
		return
	}
	if err := syncFolder(last); err != nil && !errors.Is(err, fs.ErrNotExist) {
		slog.Warningf("Files of zones that are kept no more: %v", err)
	}
}

// clearInTime is clear; it returns also when the disk does not answer.
func (f *folder) clearInTime() {
	over := make(chan struct{})
	go func() {
		defer close(over)
		f.clear()
	}()
	select {
	case <-over:
	case <-time.After(diskPatience):
	}
}
