package geoip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"github.com/coredns/coredns/plugin/metadata"

	"github.com/oschwald/maxminddb-golang/v2"
)

// database is what a file had when it was opened; any number of goroutines may look up.
type database struct {
	schemas []schema
	version uint // of IP

	mu     sync.RWMutex
	reader *maxminddb.Reader // nil when the database is closed
	free   func()
}

// schema is a kind of data that a database may have, with the labels that come of it.
type schema struct {
	name   string
	types  []string // parts of the names of databases that have it
	labels []label
}

// label is a label and where its value is taken from.
type label struct {
	name string
	of   func(*record) string
}

// record is what the databases know of an address.
type record struct {
	City         named    `maxminddb:"city"`
	Continent    coded    `maxminddb:"continent"`
	Country      country  `maxminddb:"country"`
	Location     location `maxminddb:"location"`
	Postal       postal   `maxminddb:"postal"`
	Subdivisions []coded  `maxminddb:"subdivisions"`
	Number       *uint32  `maxminddb:"autonomous_system_number"`
	Organization string   `maxminddb:"autonomous_system_organization"`
}

type (
	names struct {
		English string `maxminddb:"en"`
	}
	named struct {
		Names names `maxminddb:"names"`
	}
	coded struct {
		Names   names  `maxminddb:"names"`
		Code    string `maxminddb:"code"`
		ISOCode string `maxminddb:"iso_code"`
	}
	country struct {
		Names   names  `maxminddb:"names"`
		ISOCode string `maxminddb:"iso_code"`
		IsInEU  bool   `maxminddb:"is_in_european_union"`
	}
	location struct {
		Latitude  *float64 `maxminddb:"latitude"`
		Longitude *float64 `maxminddb:"longitude"`
		TimeZone  string   `maxminddb:"time_zone"`
	}
	postal struct {
		Code string `maxminddb:"code"`
	}
)

// probe is looked up when a database is opened.
var probe = netip.AddrFrom4([4]byte{127, 0, 0, 1})

var (
	errNoSchema = errors.New("database does not provide any supported schema (city, asn)")
	errClosed   = errors.New("the database is closed")
)

// open opens a database and finds out what it has.
func open(path string) (*database, error) {
	text, free, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("failed to open database file: %w", err)
	}
	db := &database{free: free}
	if err := db.read(text, path); err != nil {
		db.close()
		return nil, err
	}
	return db, nil
}

// read takes in what the file at path has.
func (db *database) read(text []byte, path string) (err error) {
	if db.reader, err = maxminddb.OpenBytes(text); err != nil {
		return fmt.Errorf("failed to open database file: %w", err)
	}
	db.version = db.reader.Metadata.IPVersion
	for _, s := range schemas {
		if !s.in(db.reader.Metadata.DatabaseType) {
			continue
		}
		if _, err := db.lookup(probe); err != nil {
			return fmt.Errorf("unexpected failure looking up database %q schema %q: %w", path, s.name, err)
		}
		db.schemas = append(db.schemas, s)
	}
	if db.schemas == nil {
		return errNoSchema
	}
	return nil
}

// close gives the memory back. What is looked up afterwards is not found.
func (db *database) close() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.reader = nil
	db.free()
	db.free = func() {}
}

// in reports whether a database of a type has the schema.
func (s *schema) in(databaseType string) bool {
	for _, part := range s.types {
		if strings.Contains(databaseType, part) {
			return true
		}
	}
	return false
}

// lookup is the record of an address, an empty one if the database has none.
func (db *database) lookup(a netip.Addr) (*record, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	r := new(record)
	if db.reader == nil {
		return r, errClosed
	}
	return r, db.reader.Lookup(a).Decode(r)
}

// offer sets the labels of an address in ctx. One that the database cannot have has none.
func (db *database) offer(ctx context.Context, a netip.Addr) {
	if !a.IsValid() || a.Is6() && db.version == 4 {
		log.Debugf("Setting up metadata failed: no place for the address %s in a database of IPv%d", a, db.version)
		return
	}
	l := &lazy{db: db, addr: a}
	for i := range db.schemas {
		for j := range db.schemas[i].labels {
			of := db.schemas[i].labels[j].of
			if !metadata.SetValueFunc(ctx, db.schemas[i].labels[j].name, func() string { return of(l.record()) }) {
				return // nobody collects
			}
		}
	}
}

// lazy is a record that is looked up when it is wanted.
type lazy struct {
	db   *database
	addr netip.Addr
	once sync.Once
	r    *record
}

func (l *lazy) record() *record {
	l.once.Do(func() {
		var err error
		if l.r, err = l.db.lookup(l.addr); err != nil {
			log.Debugf("Looking up %s failed: %v", l.addr, err)
			l.r = new(record)
		}
	})
	return l.r
}
