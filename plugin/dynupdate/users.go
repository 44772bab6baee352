package dynupdate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/zonekeys"
)

// terms is an instance that uses a store, and what it asks of it.
type terms struct {
	by         *DynUpdate
	generation any // the configuration that it belongs to
	keep       journalLimits
	keys       []zonekeys.Pair
	nsec3      bool
	serials    serialPolicy
	follows    []*store // whose addresses PTR records are made of
}

// enter makes an instance a user of the store. The first one has the store as it asks. Those of a reload, which may yet
// fail, wait for that until the configuration before has left: see release.
func (s *store) enter(t terms) error {
	first, err := s.acquire(t)
	if err != nil || !first {
		return err
	}
	if err := s.signWith(t.keys, t.nsec3, t.serials); err != nil || len(t.follows) == 0 {
		return err
	}
	stores.Lock()
	s.follow(t)
	stores.Unlock()
	return s.agree()
}

// acquire is enter without signing. The first user makes the database, or takes it over from another server.
func (s *store) acquire(t terms) (first bool, err error) {
	stores.Lock()
	defer stores.Unlock()
	if s.parking != nil {
		s.parking.Stop()
	}
	s.mu.Lock()
	closed := s.isClosed
	if first = len(s.users) == 0; first {
		s.keep, s.kept = t.keep, t.generation
	}
	s.mu.Unlock()
	if closed {
		return false, fmt.Errorf("database %q was closed before it was used", s.path)
	}
	if first && s.db != nil {
		if !s.db.IsOpen() {
			if err := s.create(); err != nil {
				return false, err
			}
		}
		s.begin()
	}
	s.mu.Lock()
	s.users = append(s.users, t)
	s.mu.Unlock()
	if first {
		shown.add(s)
	}
	return first, nil
}

// release ends an instance's use of the store, and, if it was the last one, the store. If all of its configuration have
// left, the store becomes what those that came later ask of it.
func release(s *store, by *DynUpdate) {
	stores.Lock()
	renew := s.release(by)
	stores.Unlock()
	if !renew {
		return
	}
	s.agreeLater()
	go func() { // a large zone takes its time to be signed
		if err := s.renew(); err != nil && !errors.Is(err, errClosed) {
			logger.Errorf("Signing: %v", err)
		}
	}()
}

// release is release with stores locked. It reports whether the zone is to be made right for others.
func (s *store) release(by *DynUpdate) (renew bool) {
	next, began := terms{}, false
	s.mu.Lock()
	for i, u := range s.users {
		if u.by == by {
			s.users, began = slices.Delete(s.users, i, i+1), true
			break
		}
	}
	delete(s.onChange, by)
	if n := len(s.users); n > 0 || s.isClosed {
		if !s.isClosed && !slices.ContainsFunc(s.users, func(u terms) bool { return u.generation == s.kept }) {
			next = s.users[n-1]
			s.keep, s.kept = next.keep, next.generation
			renew = s.setSigner(next.keys, next.nsec3, next.serials)
		}
		s.mu.Unlock()
		if next.by != nil {
			s.follow(next)
			renew = renew || len(next.follows) > 0
		}
		return renew
	}
	s.mu.Unlock()
	s.follow(terms{}) // before it is closed: no update of those that it follows is to fail for it
	s.mu.Lock()
	s.isClosed = true
	if s.unrenew != nil {
		close(s.unrenew)
		s.unrenew = nil
	}
	s.mu.Unlock()
	shown.remove(s)
	if stores.all[s.path] == s {
		delete(stores.all, s.path)
	}
	switch {
	case s.db == nil:
	case began:
		s.poke()
		<-s.ended
	default:
		s.db.Close()
	}
	return false
}
