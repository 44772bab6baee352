package dynupdate

import (
	"fmt"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/database"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

// retryEvery is how often a database that failed is tried again. It is a variable for tests.
var retryEvery = 5 * time.Second

// commits is the committer of a store: it makes groups durable, one after the other, until the store is closed.
func (s *store) commits() {
	defer close(s.ended)
	if !s.db.IsOpen() && !s.handOver() {
		return
	}
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	for {
		select {
		case <-s.wake:
		case <-retry.C:
			s.recover()
		case r := <-s.written():
			s.switchTo(r)
		}
		// After each commit the others have their turn: there may always be an update that waits.
		if s.commitNext() {
			s.poke()
		}
		if s.closing() {
			for s.commitNext() {
			}
			s.abandon()
			s.db.Close()
			return
		}
		s.considerRewrite()
	}
}

// closing reports whether the store is closed.
func (s *store) closing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isClosed
}

// commitNext makes the next group durable; it reports false if there is none.
func (s *store) commitNext() bool {
	s.mu.Lock()
	g := s.waiting
	s.waiting, s.underWay = nil, g
	s.mu.Unlock()
	if g == nil {
		return false
	}
	for _, a := range g.after {
		if <-a.done; a.err != nil {
			s.mu.Lock()
			s.underWay = nil
			s.takeBack(g, a.err)
			s.mu.Unlock()
			return false
		}
	}
	var frame []byte
	err := s.restore()
	if err == nil {
		frame, err = s.db.Commit(g.deltas...)
	}
	s.mu.Lock()
	s.underWay = nil
	if err != nil {
		s.fail(g, err)
		s.mu.Unlock()
		return false
	}
	if s.rewriting != nil {
		s.rewriting.tail = append(s.rewriting.tail, frame)
	}
	s.publish(g.tip, g.deltas...)
	s.mu.Unlock()
	commitSeconds.WithLabelValues(s.zone).Observe(time.Since(g.begun).Seconds())
	s.size.Store(s.db.Size())
	close(g.done)
	s.changed()
	return true
}

// fail takes back what is not durable, and refuses updates from now on. s.mu is held.
func (s *store) fail(g *group, err error) {
	s.trouble = err
	s.readOnly.Store(true)
	s.takeBack(g, err)
	logger.Errorf("Zone %s takes no updates: %v", s.zone, err)
}

// takeBack takes back what is not durable. s.mu is held.
func (s *store) takeBack(g *group, err error) {
	s.tip = s.durable
	for _, failed := range [...]*group{g, s.waiting} {
		if failed != nil {
			failed.err = err
			close(failed.done)
		}
	}
	s.waiting = nil
	if len(s.followers) > 0 {
		s.agreeLater() // these may have become durable
	}
}

// recover sees whether a database that failed takes commits again. If it is not known what stands in it, it is written
// anew.
func (s *store) recover() {
	s.mu.Lock()
	trouble := s.trouble
	s.mu.Unlock()
	err := error(nil)
	switch {
	case !s.db.IsOpen():
		if !s.handedOver() {
			return
		}
	case s.db.IsBroken():
		err = s.rewriteNow()
	case trouble == nil:
		return
	default:
		_, err = s.db.Commit() // of nothing
	}
	if err != nil || trouble == nil {
		return
	}
	s.mu.Lock()
	s.trouble = nil
	s.readOnly.Store(false)
	s.mu.Unlock()
	logger.Infof("Zone %s takes updates again", s.zone)
	s.agreeLater()
}

// rewriting is a database that is being written anew, beside the one in use.
type rewriting struct {
	done chan rewritten
	tail [][]byte // frames that were committed since
}

type rewritten struct {
	file *database.Anew
	err  error
}

// considerRewrite begins to write the database anew if that is worth it.
func (s *store) considerRewrite() {
	if s.rewriting != nil || !s.db.HasGrown() {
		return
	}
	s.mu.Lock()
	v, history := s.durable, s.history()
	s.rewriting = &rewriting{done: make(chan rewritten, 1)}
	r := s.rewriting
	s.mu.Unlock()
	go func() {
		f, err := s.db.Write(v, history)
		r.done <- rewritten{f, err}
	}()
}

// history is the deltas that lead to what is served. s.mu is held.
func (s *store) history() []*zone.Delta {
	return s.journal.All()
}

// written is where the end of a rewriting is told, nil if there is none.
func (s *store) written() <-chan rewritten {
	if s.rewriting == nil {
		return nil
	}
	return s.rewriting.done
}

// switchTo goes on with a database that was written anew.
func (s *store) switchTo(r rewritten) {
	s.mu.Lock()
	tail := s.rewriting.tail
	s.rewriting = nil
	s.mu.Unlock()
	taken, err := false, r.err
	if err == nil {
		if err = r.file.Append(tail); err == nil {
			taken, err = s.take(r.file)
		} else {
			r.file.Discard()
		}
	}
	if err != nil {
		logger.Warningf("Zone %s: writing the database anew: %v", s.zone, err)
	}
	if !taken {
		s.db.Postpone()
	}
}

// take makes a file that was written beside the database the database; see database.File.Take.
func (s *store) take(f *database.Anew) (taken bool, err error) {
	if taken, err = s.db.Take(f); taken {
		s.size.Store(s.db.Size())
	}
	return taken, err
}

// restore writes the database anew if it is broken, or somebody has removed it.
func (s *store) restore() error {
	if s.db.IsBroken() {
		return s.rewriteNow()
	}
	if !s.db.IsRemoved() {
		return nil
	}
	if err := s.rewriteNow(); err != nil {
		s.db.Break()
		return fmt.Errorf("database %q was removed: writing it anew: %w", s.path, err)
	}
	logger.Warningf("Zone %s: database %q was removed, and is written anew", s.zone, s.path)
	return nil
}

// rewriteNow writes the database anew, with what is served. Nobody else writes beside it then.
func (s *store) rewriteNow() error {
	s.abandon()
	s.mu.Lock()
	s.rewriting = nil
	v, history := s.durable, s.history()
	s.mu.Unlock()
	f, err := s.db.Write(v, history)
	if err == nil {
		_, err = s.take(f)
	}
	return err
}

// abandon ends a rewriting that is under way.
func (s *store) abandon() {
	if s.rewriting == nil {
		return
	}
	if r := <-s.rewriting.done; r.file != nil {
		r.file.Discard()
	}
}
