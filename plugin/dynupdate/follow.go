package dynupdate

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// This file has a zone with reverse_of follow those that it names: an update of addresses changes both or none.
//
//	update ──▶ store with addresses: next version ──lead──▶ followers: next versions of theirs
//	                 │ if all can be made                        │
//	                 ▼                                           ▼
//	               group ──waits for──▶ the followers' groups: these are durable first
//
// The lock of a store is taken before those of its followers, and these in the order in which they were made. No
// zone has both, so there is no circle.

// led is what an update does to a follower.
type led struct {
	follower
	*prepared        // nil if nothing changes
	after     *group // what it becomes durable with
}

// following is what an update does to followers, which are locked until it is installed.
type following []led

// lead prepares what a change does to the followers that it concerns. If one cannot have it, nothing is done. s.mu is
// held.
func (s *store) lead(d *zone.Delta) (all following, err error) {
	for _, f := range s.followers {
		changes := f.pointers(s.tip.Origin(), d)
		if len(changes) == 0 {
			continue
		}
		f.store.mu.Lock()
		all = append(all, led{follower: f})
		if all[len(all)-1].prepared, err = f.make(changes); err != nil {
			all.unlock()
			return nil, err
		}
	}
	return all, nil
}

func (all following) unlock() {
	for _, l := range all {
		l.store.mu.Unlock()
	}
}

// install makes the versions those that are to become durable. after is when they are; changed is the stores that have no
// such thing to wait for.
func (all following) install() (after []*group, changed []*store) {
	for i := range all {
		l := &all[i]
		if l.prepared == nil {
			l.after = l.store.last()
		} else if l.after = l.store.install(l.prepared); l.after == nil {
			changed = append(changed, l.store)
		}
		if l.after != nil {
			after = append(after, l.after)
		}
	}
	all.unlock()
	return after, changed
}

// tell counts and logs what was done, when it is durable.
func (all following) tell(of string) {
	for _, l := range all {
		if l.prepared == nil {
			continue
		}
		added, removed := l.settings.counts(l.delta)
		recordsChanged.WithLabelValues(l.store.zone, "add").Add(float64(added))
		recordsChanged.WithLabelValues(l.store.zone, "remove").Add(float64(removed))
		if !l.settings.quiet {
			logger.Infof("Zone %s: addresses of %s: +%d -%d serial %d->%d", l.store.zone, of, added, removed, l.delta.From, l.delta.To)
		}
	}
}

// await waits until what was done is durable.
func (all following) await() error {
	for _, l := range all {
		if l.after == nil {
			continue
		}
		if <-l.after.done; l.after.err != nil {
			return l.after.err
		}
	}
	return nil
}

// agree makes the PTR records of a follower those that the addresses of the zone make. While another process has the
// database of either, there is nothing to do: it is done when it has let go of both.
func (f *follower) agree(s *store) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("zone %s, of %s: %w", f.store.zone, s.zone, err)
		}
	}()
	s.mu.Lock()
	if !slices.Contains(s.followers, *f) || s.isClosed || s.handing != nil {
		s.mu.Unlock()
		return nil
	}
	f.store.mu.Lock()
	if f.store.handing != nil {
		f.store.mu.Unlock()
		s.mu.Unlock()
		return nil
	}
	p, err := f.make(f.differences(s.tip))
	if err != nil {
		f.store.mu.Unlock()
		s.mu.Unlock()
		return err
	}
	all := following{{follower: *f, prepared: p}}
	_, changed := all.install()
	s.mu.Unlock()
	for _, told := range changed {
		told.changed()
	}
	if err := all.await(); err != nil {
		return err
	}
	all.tell(s.zone)
	return nil
}

// follow makes the store one that has PTR records for the addresses of those that its terms name, and of no others.
// stores is locked.
func (s *store) follow(t terms) {
	s.mu.Lock()
	before := s.follows
	s.follows = t.follows
	s.mu.Unlock()
	for _, of := range before {
		if !slices.Contains(t.follows, of) {
			of.setFollower(s, nil)
		}
	}
	for _, of := range t.follows {
		of.setFollower(s, &t.by.settings)
	}
}

// setFollower makes a store a follower with these settings, or none.
func (s *store) setFollower(by *store, settings *settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(s.followers), func(f follower) bool { return f.store == by })
	if settings != nil {
		all = append(all, follower{by, settings})
		sort.Slice(all, func(i, j int) bool { return all[i].store.number < all[j].store.number })
	}
	s.followers = all
}

// agree makes right what the store follows, and who follows it.
func (s *store) agree() error {
	s.mu.Lock()
	follows, followers := s.follows, s.followers
	s.mu.Unlock()
	var errs []error
	for _, f := range followers {
		errs = append(errs, f.agree(s))
	}
	for _, of := range follows {
		of.mu.Lock()
		followers := of.followers
		of.mu.Unlock()
		for _, f := range followers {
			if f.store == s {
				errs = append(errs, f.agree(of))
			}
		}
	}
	return errors.Join(errs...)
}

// agreeOrTell is agree for who has no use for its error.
func (s *store) agreeOrTell() {
	if err := s.agree(); err != nil && !errors.Is(err, errClosed) {
		logger.Errorf("PTR records do not have all addresses as yet: %s", log.OneLine(err))
	}
}

// agreeLater is agree for who does not wait for it.
func (s *store) agreeLater() { go s.agreeOrTell() }

// frees reports whether a change of a zone with PTR records takes CNAME records away, beside which there were none. s.mu
// is held.
func (s *store) frees(d *zone.Delta) bool {
	if len(s.follows) == 0 {
		return false
	}
	w := d.Walk()
	for range d.Removed {
		if r, _ := w.Next(); r.Type == dns.TypeCNAME {
			return true
		}
	}
	return false
}
