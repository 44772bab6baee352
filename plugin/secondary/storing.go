package secondary

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// A disk may be slow, or not answer at all, as one in the network may. Zones are served and followed all the same: run
// waits a moment only for what is stored. A few are stored at a time, of all in the process, as each takes a thread of it
// for as long as the disk does not answer.

// storing is one time that a zone is stored.
type storing struct {
	at      time.Time  // when a primary confirmed the zone
	useless bool       // what is stored cannot be served
	anew    bool       // the file is written; else it gets another time only, if it takes that
	done    chan error // has what became of it; anew is known then
}

// stores is room for the zones of the process that are stored at once.
var stores = make(chan struct{}, 8)

var (
	late     atomic.Bool  // it was told that the disk does not answer
	answered atomic.Int64 // when something was stored last, in seconds of Unix: many zones wait for each other
)

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
	stores <- struct{}{}
	var err error
	if s.anew = s.anew || r.gone.Load() || os.Chtimes(r.path(), time.Time{}, s.at) != nil; s.anew {
		err = r.store(s)
	}
	answered.Store(time.Now().Unix())
	<-stores
	s.done <- err
}

// await waits a moment for what is being stored, and takes in what became of it. It reports whether nothing is being
// stored any more.
func (r *replica) await() bool {
	if r.storing == nil {
		return true
	}
	select {
	case err := <-r.storing.done:
		late.Store(false)
		r.stored(err)
		return true
	case <-time.After(diskPatience):
		if time.Since(time.Unix(answered.Load(), 0)) >= diskPatience && !late.Swap(true) {
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
