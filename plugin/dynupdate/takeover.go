package dynupdate

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/database"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
	"go.etcd.io/bbolt"
)

// A database that CoreDNS has written is taken over once: it is a bbolt file with one bucket, whose records are in wire
// form, one behind the other. It is kept beside ours, so that the way back is to rename it.

const (
	foreignBucket  = "dynupdate-v1"
	foreignOrigin  = "origin"
	foreignRecords = "records"
)

// foreignMagic is what stands behind the page header of a bbolt file, in the machine's order of octets.
var foreignMagic = [...]string{"\xed\xda\x0c\xed", "\xed\x0c\xda\xed"}

// isForeign reports whether a file is one of bbolt.
func isForeign(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var head [20]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return false, nil // too short for one
	}
	magic := string(head[16:])
	return magic == foreignMagic[0] || magic == foreignMagic[1], nil
}

// readForeign reads a bbolt database. It is not changed.
func readForeign(path, name string, origin []byte) (v *zone.Zone, err error) {
	defer func() {
		if r := recover(); r != nil { // bbolt does so if pages are not what they should be
			err = fmt.Errorf("database %q: it is damaged: %v", path, r)
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return nil, fmt.Errorf("database %q: %w", path, err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte(foreignBucket))
		if bucket == nil {
			return fmt.Errorf("database %q has no data of dynupdate", path)
		}
		if of := string(bucket.Get([]byte(foreignOrigin))); dns.CanonicalName(of) != name {
			return &database.OtherZoneError{Path: path, Zone: of}
		}
		v, err = foreignZone(bucket.Get([]byte(foreignRecords)), origin)
		if err != nil {
			return fmt.Errorf("database %q: %w", path, err)
		}
		return nil
	})
	return v, err
}

// foreignZone is the zone of records in wire form.
func foreignZone(b, origin []byte) (*zone.Zone, error) {
	builder := zone.NewBuilder(origin, func(string, ...any) {})
	builder.FoldCase()
	for off := 0; off < len(b); {
		rr, next, err := dns.UnpackRR(b, off)
		if err != nil {
			return nil, fmt.Errorf("a record is damaged at offset %d: %w", off, err)
		}
		off = next
		if !dns.IsSubDomain(wire.Text(origin), dns.CanonicalName(rr.Header().Name)) {
			return nil, fmt.Errorf("record %s is not in zone %s", rr.Header().Name, wire.Text(origin))
		}
		if err := builder.AddRR(rr); err != nil {
			return nil, err
		}
	}
	v, err := builder.Build()
	if err != nil {
		return nil, err
	}
	return v.Growing()
}

// foreignName is where a database that was taken over is kept.
func foreignName(path string) string { return path + ".bbolt" }

// keepForeign gives a database its other name too, so that its own is free. What is there under that name already
// stays, under one with the time.
func keepForeign(path string) error {
	kept := foreignName(path)
	if _, err := os.Lstat(kept); err == nil {
		if err := os.Rename(kept, kept+"."+time.Now().UTC().Format("20060102T150405.000000000")); err != nil {
			return fmt.Errorf("database %q: %w", path, err)
		}
	}
	if err := os.Link(path, kept); err != nil {
		return fmt.Errorf("database %q: keeping it as %q: %w", path, kept, err)
	}
	return nil
}
