package dynupdate

import (
	"errors"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/database"
)

// A process that is to take over from another one (SIGUSR2) reads the database, and serves that. Updates wait until the
// other process has let go of it, for what it wrote last counts.

// handOverWait is how long that may take until updates are refused; then it is looked for from time to time (see
// recover). It is a variable for tests.
var handOverWait = 30 * time.Second

// handOver waits for the process that hands over to this one to let go of the database, and goes on with what it wrote
// last. It reports false if the store was closed meanwhile. The committer does it first of all.
func (s *store) handOver() bool {
	d, c, err := s.takeHandOver(handOverWait)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(s.handing.done)
	g := s.handing
	s.handing = nil
	if err == nil {
		s.goOn(d, c)
		return true
	}
	s.trouble, g.err = err, err
	if errors.Is(err, errClosed) {
		return false
	}
	s.readOnly.Store(true)
	logger.Errorf("Zone %s takes no updates: %v", s.zone, err)
	return true
}

// handedOver sees whether a process that did not let go of the database in time has done so meanwhile: it may have been
// in lameduck mode, or busy with the end of long transfers. It reports whether the database is ours now.
func (s *store) handedOver() bool {
	d, c, err := s.takeHandOver(0)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goOn(d, c)
	return true
}

// goOn goes on with a database that is ours now. s.mu is held.
func (s *store) goOn(d *database.File, c database.Contents) {
	*s.db = *d
	s.size.Store(d.Size())
	s.journal.Clear()
	for _, delta := range c.Deltas {
		s.remember(delta)
	}
	s.tip = c.Version
	s.publish(c.Version)
	s.agreeLater()
}

// takeHandOver locks and reads a database that another process lets go of within a time.
func (s *store) takeHandOver(wait time.Duration) (d *database.File, c database.Contents, err error) {
	var unlock func()
	for deadline := time.Now().Add(wait); ; {
		if unlock, err = database.Lock(s.path, 100*time.Millisecond); err == nil {
			break
		}
		if s.closing() {
			return nil, c, errClosed
		}
		if !errors.Is(err, database.ErrInUse) || time.Now().After(deadline) {
			return nil, c, err
		}
	}
	return database.Open(s.path, s.db.Origin(), s.keep.count, unlock)
}
