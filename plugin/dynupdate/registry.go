package dynupdate

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/database"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/coredns/caddy"
)

// stores is the stores of this process that have databases, by their paths. A reload finds its predecessor's there.
var stores struct {
	sync.Mutex
	all map[string]*store
}

// claim is a place in a configuration that uses a database. A block with several keys is set up once for each.
type claim struct {
	instance any
	key      int
}

// claimed is where a directive stands.
func claimed(instance *caddy.Instance, key int) claim { return claim{instance, key} }

const (
	// lockWait is how long another process may hold a database that is to be opened.
	lockWait = time.Second
	// parkFor is how long a store waits for its first user, after its directive was read: until all zones of the
	// configuration are read, which may be large.
	parkFor = 10 * time.Minute
)

// source is where a store comes from, as a directive says.
type source struct {
	zone     string
	database string // "" for none
	seed     string
	settle   func(v *zone.Zone, signed bool) error // refuses a version that is against the directive's limits
	keep     journalLimits
	claim    claim
	looks    bool // the configuration is only looked at: another process may well have the database
}

// openStore finds or makes the store of a directive. Nothing is written before acquire.
func openStore(src source) (*store, error) {
	if src.database == "" {
		v, err := readSeed(src.seed, src.zone)
		if err == nil {
			err = src.settle(v, false)
		}
		if err != nil {
			return nil, err
		}
		return newStore(src.zone, "", v, nil, nil, src.keep), nil
	}
	path, err := realPath(src.database)
	if err != nil {
		return nil, err
	}
	if sameFile(path, src.seed) {
		return nil, fmt.Errorf("database %q and file %q are the same file", src.database, src.seed)
	}
	stores.Lock()
	defer stores.Unlock()
	s := stores.all[path]
	if s != nil && s.isLeft(src.claim) { // it is to be as the files are now
		s.parking.Stop()
		s.release(nil)
		s = nil
	}
	if s == nil {
		if s, err = readStore(path, src); err != nil {
			return nil, err
		}
		if stores.all == nil {
			stores.all = map[string]*store{}
		}
		stores.all[path] = s
		s.parking = time.AfterFunc(parkFor, func() { release(s, nil) })
	}
	if err := s.admits(src); err != nil {
		if len(s.users) == 0 && s.parking != nil && s.parking.Stop() {
			s.release(nil)
		}
		return nil, err
	}
	return s, nil
}

// abandon ends a store that has no user, and will get none, as the configuration that it was opened for last is over.
func abandon(s *store, by claim) {
	stores.Lock()
	defer stores.Unlock()
	s.mu.Lock()
	waits := len(s.users) == 0 && !s.isClosed && s.claims[by]
	s.mu.Unlock()
	if waits && s.parking != nil {
		s.parking.Stop()
		s.release(nil)
	}
}

// isLeft reports whether a store has no user, and will get none, as the configuration that it was opened for has failed.
func (s *store) isLeft(by claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.claims {
		if c.instance == by.instance {
			return false
		}
	}
	return len(s.users) == 0
}

// admits reports what is against a directive's use of the store. stores is locked.
func (s *store) admits(src source) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.zone != src.zone:
		return &database.OtherZoneError{Path: src.database, Zone: s.zone}
	case src.claim.instance != nil && s.claims[src.claim]:
		return fmt.Errorf("database %q is used twice", src.database)
	}
	if err := src.settle(s.durable, s.wasSigned); err != nil {
		return err
	}
	maps.DeleteFunc(s.claims, func(c claim, _ bool) bool { return c.instance != src.claim.instance })
	s.claims[src.claim] = true
	return nil
}

// realPath is a database's path, without links, whose folder is there and can be written to.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("database %q: %w", path, err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err == nil {
		err = zonefile.Writable(dir)
	}
	if err != nil {
		return "", fmt.Errorf("database %q: its folder: %w", path, err)
	}
	if whole, err := filepath.EvalSymlinks(abs); err == nil {
		return whole, nil
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}

func sameFile(a, b string) bool {
	ai, err := os.Stat(a)
	if err != nil {
		return filepath.Clean(a) == filepath.Clean(b)
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

// readStore reads the database at path, what another server left there, or, if there is nothing, the seed.
func readStore(path string, src source) (*store, error) {
	origin, err := wire.LowerName(src.zone)
	if err != nil {
		return nil, fmt.Errorf("invalid zone %q", src.zone)
	}
	d := database.New(path, origin)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		v, err := readSeed(src.seed, src.zone)
		if err != nil {
			return nil, err
		}
		return newStore(src.zone, path, v, nil, d, src.keep), nil
	} else if err != nil {
		return nil, fmt.Errorf("database %q: %w", path, err)
	} else if !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, fmt.Errorf("database %q is not a regular file", path)
	}
	if foreign, err := isForeign(path); err != nil {
		return nil, fmt.Errorf("database %q: %w", path, err)
	} else if foreign {
		v, err := readForeign(path, src.zone, origin)
		if err != nil {
			return nil, err
		}
		s := newStore(src.zone, path, v, nil, d, src.keep)
		s.foreign = true
		return s, nil
	}
	var c database.Contents
	if src.looks {
		_, c, err = database.Look(path, origin, src.keep.count)
		d = nil
	} else {
		d, c, err = openDatabase(path, origin, src.keep.count)
	}
	if err != nil {
		return nil, err
	}
	s := newStore(src.zone, path, c.Version, c.Deltas, d, src.keep)
	s.wasSigned = true // updates cannot have added such records
	return s, nil
}

// openDatabase locks and reads a database of ours. A process that is to take over from one that has it open reads what
// is there; see handOver.
func openDatabase(path string, origin []byte, keep int) (*database.File, database.Contents, error) {
	unlock, err := database.Lock(path, lockWait)
	switch {
	case err == nil:
		return database.Open(path, origin, keep, unlock)
	case errors.Is(err, database.ErrInUse) && caddy.IsUpgrade():
		return database.Look(path, origin, keep)
	}
	return nil, database.Contents{}, err
}

// create writes the database for the first time, or begins to wait for the process that has it. Of several processes that
// begin at the same time one does; the others would take its file away from it.
func (s *store) create() error {
	unlock, err := zonefile.LockFolder(filepath.Dir(s.path))
	if err != nil {
		return fmt.Errorf("database %q: its folder: %w", s.path, err)
	}
	defer unlock()
	if info, err := os.Stat(s.path); err == nil && info.Size() > 0 {
		foreign, err := isForeign(s.path)
		switch {
		case err != nil:
			return fmt.Errorf("database %q: %w", s.path, err)
		case foreign && s.foreign: // it is as it was read
		case caddy.IsUpgrade():
			s.handing = &group{done: make(chan struct{})}
			return nil
		default:
			return fmt.Errorf("database %q %w: another process has just made it", s.path, database.ErrInUse)
		}
	}
	f, err := s.db.Write(s.durable, nil)
	if err != nil {
		return fmt.Errorf("database %q: %w", s.path, err)
	}
	if s.foreign {
		if err := keepForeign(s.path); err != nil {
			f.Discard()
			return err
		}
		logger.Infof("Database %q of another server was taken over, with %d records; it is kept as %q", s.path, s.durable.Records(), foreignName(s.path))
		s.foreign = false
	}
	if _, err := s.take(f); err != nil {
		return fmt.Errorf("database %q: %w", s.path, err)
	}
	return nil
}
