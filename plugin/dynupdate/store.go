package dynupdate

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/database"
	"github.com/coredns/coredns/plugin/dynupdate/signing"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/tsig"
)

// store is a zone that is written to: the version that queries see, the one that the next update begins with, and the
// database. All dynupdate instances of one database share it, so that a reload loses no update, and never serves two
// truths.
//
//	update ──mu──▶ tip: a version that is not durable yet ──▶ group ──committer: one write, one sync──▶ served
//	   │                                                        ▲
//	   └── waits for the group ─────────────────────────────────┘ others join while the one before is on its way
//
// If a commit fails, the tip goes back to what is served, and all who waited are told.
type store struct {
	zone string // fully qualified and in lower case
	path string // of the database, "" for none

	number uint64 // of this store among all of the process, which orders locks

	served *file.Zone // its versions are durable

	// For who reads figures:
	size     atomic.Int64 // of the database; the committer sets it
	readOnly atomic.Bool  // there is trouble
	pending  atomic.Int64 // instances that are going to notify secondaries

	mu        sync.Mutex // guards what follows; never held during I/O
	tip       *zone.Zone
	durable   *zone.Zone
	waiting   *group // of updates that the committer comes to next, nil for none
	underWay  *group // that it is at, nil for none
	handing   *group // ends when another process has let go of the database, nil if it is ours
	journal   zone.Journal
	keep      journalLimits
	replays   replays
	trouble   error // why the database takes nothing at the moment
	frozen    bool
	now       func() time.Time // by which signatures are judged
	onChange  map[*DynUpdate]func()
	followers []follower // zones whose PTR records are made of this one's addresses; see follow.go
	follows   []*store   // zones whose addresses the PTR records here are made of
	users     []terms    // in the order in which they came
	kept      any        // the generation whose terms are kept
	claims    map[claim]bool
	parking   *time.Timer // ends a store that nobody has used yet
	isClosed  bool
	signer    *signing.Signer // nil if the zone has no signatures
	serials   serialPolicy    // of changes that are no client's
	unrenew   chan struct{}   // ends the search for signatures that end soon, nil if there is none
	wasSigned bool            // records of DNSSEC in the zone are ours
	wake      chan struct{}
	ended     chan struct{}
	rewriting *rewriting // of the database, nil for none

	db      *database.File // the committer's, from begin on
	foreign bool           // what is at path is another server's; belongs to who opens the store
}

// journalLimits is how much is kept for incremental transfers.
type journalLimits struct{ count, size int }

// group is updates that become durable together.
type group struct {
	tip    *zone.Zone
	deltas []*zone.Delta
	after  []*group // of followers: they become durable before
	begun  time.Time
	done   chan struct{} // closed when it is known what became of it
	err    error
}

// Errors of updates.
var (
	errClosed = errors.New("the server is going down")
	errFrozen = errors.New("the zone is frozen")
)

// storesMade is how many stores the process has made.
var storesMade atomic.Uint64

// newStore is a store for a zone with a first version, which must be growing. db is nil if changes live in memory only.
func newStore(name, path string, first *zone.Zone, deltas []*zone.Delta, db *database.File, keep journalLimits) *store {
	s := &store{
		zone: name, path: path, number: storesMade.Add(1), served: file.NewZone(name, ""), tip: first, durable: first, db: db, keep: keep, now: time.Now,
		onChange: map[*DynUpdate]func(){}, claims: map[claim]bool{}, wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	s.replays.init()
	if db != nil {
		s.size.Store(db.Size())
	}
	for _, d := range deltas {
		s.remember(d)
	}
	s.served.Advance(first)
	if db == nil {
		close(s.ended)
	}
	return s
}

// begin starts the committer of a store with a database.
func (s *store) begin() {
	if s.db != nil {
		go s.commits()
	}
}

// remember keeps a delta for incremental transfers.
func (s *store) remember(d *zone.Delta) {
	s.journal.Add(d, s.keep.count, s.journalSize())
}

// journalSize is up to how many octets the journal may take: as many as the zone, unless it is said otherwise.
func (s *store) journalSize() int {
	if s.keep.size > 0 {
		return s.keep.size
	}
	return max(leastJournal, s.tip.Size())
}

// leastJournal is what the journal of a small zone may take, in octets.
const leastJournal = 64 << 10

// since is what changed from a serial to a version, nil if that is not known.
func (s *store) since(from uint32, v *zone.Zone) []*zone.Delta {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.Since(from, v.Serial())
}

// edit is what an update does to a change. It reports whether the change is to be made.
type edit func(c *zone.Change) (make bool)

// check looks at a version that was made, before anybody sees it; it may refuse it.
type check func(next *zone.Zone, d *zone.Delta) bool

// update makes one update, and returns when it is durable, or known to do nothing. do and ok are called once each, one
// update after the other; ok is called only if do wants the change. An error tells that the database failed: then
// nothing has changed, and what do and ok found does not count.
func (s *store) update(do edit, ok check) error {
	if err := s.awaitHandOver(); err != nil {
		return err
	}
	s.mu.Lock()
	j, err := s.join(do, ok)
	s.mu.Unlock()
	for _, told := range j.changed {
		told.changed()
	}
	if err == nil && j.group != nil {
		<-j.group.done
		err = j.group.err
	}
	if err == nil {
		j.led.tell(s.zone)
		if j.frees {
			s.agreeOrTell()
		}
	}
	return err
}

// handOverPatience is how long an update waits for another process to let go of the database.
const handOverPatience = 5 * time.Second

// awaitHandOver waits until no other process has the database, or that of a follower.
func (s *store) awaitHandOver() error {
	s.mu.Lock()
	waits := []*group{s.handing}
	all := s.followers
	s.mu.Unlock()
	for _, f := range all {
		f.store.mu.Lock()
		waits = append(waits, f.store.handing)
		f.store.mu.Unlock()
	}
	var patience <-chan time.Time
	for _, h := range waits {
		if h == nil {
			continue
		}
		if patience == nil {
			patience = time.After(handOverPatience)
		}
		select {
		case <-h.done:
		case <-patience:
			return database.ErrInUse
		}
	}
	return nil
}

// joined is what an update is a part of.
type joined struct {
	group   *group   // it becomes durable with, nil if there is nothing to wait for
	changed []*store // what has changed already
	led     following
	frees   bool // there may be names that addresses have PTR records at from now on
}

// join is the part of update that is done one after the other. s.mu is held.
func (s *store) join(do edit, ok check) (j joined, err error) {
	p, err := s.prepare(do, ok)
	switch {
	case err != nil:
		return j, err
	case p == nil:
		return joined{group: s.last()}, nil // what it found may not be durable yet
	}
	led, err := s.lead(p.delta)
	if err != nil {
		return j, err
	}
	after, changed := led.install()
	g := s.install(p)
	if g == nil {
		changed = append(changed, s)
	} else {
		g.after = append(g.after, after...)
	}
	return joined{g, changed, led, s.frees(p.delta)}, nil
}

// prepared is the version that an update makes, which nobody knows yet.
type prepared struct {
	next  *zone.Zone
	delta *zone.Delta
}

// prepare makes the version after the tip, nil if there is to be none. s.mu is held.
func (s *store) prepare(do edit, ok check) (*prepared, error) {
	switch {
	case s.isClosed:
		return nil, errClosed
	case s.trouble != nil:
		return nil, s.trouble
	case s.frozen:
		return nil, errFrozen
	}
	c := s.tip.Change()
	if !do(c) {
		return nil, nil
	}
	next, delta, err := c.Zone()
	if err != nil {
		return nil, fmt.Errorf("zone %s: %w", s.zone, err)
	}
	if !ok(next, delta) {
		return nil, nil
	}
	if s.signer != nil {
		if next, delta, err = s.signer.Complete(s.tip, next, delta, c.Names(), s.now()); err != nil {
			return nil, fmt.Errorf("zone %s: %w", s.zone, err)
		}
	}
	return &prepared{next, delta}, nil
}

// install makes what was prepared the tip, and returns what it becomes durable with, nil if it is served already. s.mu is
// held.
func (s *store) install(p *prepared) *group {
	s.tip = p.next
	s.wasSigned = s.wasSigned || s.signer != nil
	if s.db == nil {
		s.publish(p.next, p.delta)
		return nil
	}
	if s.waiting == nil {
		s.waiting = &group{done: make(chan struct{}), begun: time.Now()}
		s.poke()
	}
	g := s.waiting
	g.tip, g.deltas = p.next, append(g.deltas, p.delta)
	return g
}

// last is the group that the tip becomes durable with, nil if it is.
func (s *store) last() *group {
	if s.waiting != nil {
		return s.waiting
	}
	return s.underWay
}

// publish makes a version the one that queries see.
func (s *store) publish(v *zone.Zone, deltas ...*zone.Delta) {
	s.durable = v
	s.served.Advance(v)
	for _, d := range deltas {
		s.remember(d)
	}
}

// listen has an instance told of changes, until it releases the store.
func (s *store) listen(d *DynUpdate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onChange[d] = d.changed
}

// changed tells the instances that secondaries are to be notified.
func (s *store) changed() {
	s.mu.Lock()
	told := make([]func(), 0, len(s.onChange))
	for _, f := range s.onChange {
		told = append(told, f)
	}
	s.mu.Unlock()
	for _, f := range told {
		f()
	}
}

// poke wakes the committer.
func (s *store) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// freeze has updates refused, or taken again.
func (s *store) freeze(on bool) {
	s.mu.Lock()
	thawed := s.frozen && !on
	s.frozen = on
	s.mu.Unlock()
	if thawed {
		s.agreeLater()
	}
}

// healthy reports whether updates are taken.
func (s *store) healthy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble == nil
}

// unanswered takes back what is known of a request that failed for the database: it may come again.
func (s *store) unanswered(sig tsig.Signature) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replays.forget(sig)
}
