package fetch

import (
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

// steps is what an incremental transfer changes, in the order in which it comes. A few changes of a large zone make a
// version that shares all else with the one before; it takes microseconds a record, where making the zone anew takes
// half a second for a million. Many changes, and those of small zones, are made with a new zone, which is smaller and
// answers a little faster.
type steps struct {
	old     *zone.Zone
	warn    func(string, ...any)
	most    int // changes that are worth a version which shares
	changes []change
	edit    *zone.Edit // in place of changes, if they are more
}

// change is one record, in memory of its own.
type change struct {
	zone.Record
	remove bool
}

// largeZone is how many records make a zone large. It is a variable for tests.
var largeZone = 20_000

const (
	fewOf    = 16 // the part of a zone's records that are a few changes
	leastFew = 16 // changes that are always a few
)

func newSteps(old *zone.Zone, warn func(string, ...any)) *steps {
	s := &steps{old: old, warn: warn}
	// A digest is made over the TTLs as they came; a growing zone has one for all records of an RRset.
	if digest := old.Apex().Set(wire.TypeZONEMD) != nil; old.Records() >= largeZone && !digest {
		s.most = max(leastFew, old.Records()/fewOf)
	}
	return s
}

// take takes the next record that is removed, or added.
func (s *steps) take(r zone.Record, remove bool) error {
	if s.edit != nil {
		return edit(s.edit, r, remove)
	}
	// Both hold until the next record only.
	owner := make([]byte, len(r.Owner))
	wire.Lower(owner, r.Owner)
	s.changes = append(s.changes, change{zone.Record{Owner: owner, Type: r.Type, TTL: r.TTL, RData: slices.Clone(r.RData)}, remove})
	if len(s.changes) <= s.most && r.Type != wire.TypeZONEMD {
		return nil
	}
	return s.whole()
}

// whole goes on with an Edit.
func (s *steps) whole() error {
	s.edit = s.old.Edit(s.warn)
	s.edit.AllowNSEC3()
	s.edit.KeepCase()
	for _, c := range s.changes {
		if err := edit(s.edit, c.Record, c.remove); err != nil {
			return err
		}
	}
	s.changes = nil // from now on each goes to the Edit at once
	return nil
}

func edit(e *zone.Edit, r zone.Record, remove bool) error {
	if remove {
		return e.Remove(r.Owner, r.Type, r.RData)
	}
	return e.Add(r.Owner, r.Type, r.TTL, r.RData)
}

// build is the version that the steps lead to. The steps are of no use after it.
func (s *steps) build() (*zone.Zone, error) {
	if s.edit == nil {
		// The version before may be one that was built: then this takes as long as making it anew, once.
		if growing, err := s.old.Growing(); err == nil {
			// In a reload two configurations may have it, and fetch the same: the second one makes the zone anew.
			if release, ok := growing.Claim(); ok {
				v, err := s.grow(growing)
				if err != nil {
					release()
				}
				return v, err
			}
		}
		if err := s.whole(); err != nil {
			return nil, err
		}
	}
	return s.edit.Build()
}

// grow makes the steps' changes of a version. A record that is to be removed and is not there is an error: the primary
// speaks of another zone than ours (RFC 1995 §4).
func (s *steps) grow(old *zone.Zone) (*zone.Zone, error) {
	c := old.Change()
	for _, ch := range s.changes {
		err := error(nil)
		if ch.remove {
			err = c.Remove(ch.Record)
		} else {
			err = c.Add(ch.Record)
		}
		if err != nil {
			return nil, err
		}
	}
	v, _, err := c.Zone()
	return v, err
}
