package database

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

var logger = log.NewWithPlugin("dynupdate")

// File is the database of a zone. One goroutine at a time uses it.
type File struct {
	path   string
	origin []byte
	id     [16]byte
	medium Medium // nil if it is not open
	unlock func()

	size     int64 // octets that count
	snapshot int64 // of these, octets up to the end of the snapshot
	broken   bool  // what stands behind size is not known
}

// New is the database of a zone at path, where none is yet: Take makes the file. origin is the zone's name in wire form.
func New(path string, origin []byte) *File {
	f := &File{path: path, origin: origin}
	rand.Read(f.id[:])
	return f
}

// ErrInUse is the error of a database that another process has.
var ErrInUse = errors.New("is in use")

// Lock locks the database at path, waiting for another process to give it up.
func Lock(path string, wait time.Duration) (unlock func(), err error) {
	for deadline := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		unlock, ok, err := lockFile(path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("database %q: %w", path, err)
		case ok:
			return unlock, nil
		case !time.Now().Before(deadline):
			return nil, fmt.Errorf("database %q %w", path, ErrInUse)
		}
	}
}

// Open reads a database that is locked, and remembers so many of its changes. What does not count is cut off, and what
// counts is on the disk when it returns, with its name: a process that was killed may have written it just before. If
// that cannot be, the database is broken. After an error it is unlocked.
func Open(path string, origin []byte, keep int, unlock func()) (*File, Contents, error) {
	f, c, torn, err := open(path, origin, keep)
	if err != nil {
		unlock()
		return nil, c, err
	}
	f.unlock = unlock
	f.persist(torn)
	return f, c, nil
}

// Look reads a database that another process may have, and that is not open afterwards.
func Look(path string, origin []byte, keep int) (*File, Contents, error) {
	f, c, _, err := open(path, origin, keep)
	if err == nil {
		err = f.medium.Close()
	}
	if err != nil {
		return nil, c, err
	}
	f.medium = nil
	return f, c, nil
}

func open(path string, origin []byte, keep int) (f *File, c Contents, torn int64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, c, 0, fmt.Errorf("database %q: %w", path, err)
	}
	m, err := TheDisk.Open(path, false)
	if err != nil {
		return nil, c, 0, fmt.Errorf("database %q: %w", path, err)
	}
	if f, c, torn, err = read(path, m, info.Size(), origin, keep); err != nil {
		m.Close()
		return nil, c, 0, err
	}
	return f, c, torn, nil
}

// persist cuts off torn octets at the end of a database that was read, and has it be on the disk.
func (f *File) persist(torn int64) {
	var err error
	if torn > 0 {
		logger.Warningf("Database %q: a commit of %d octets that was not completed is cut off at offset %d", f.path, torn, f.size)
		err = f.medium.Truncate(f.size)
	}
	if err == nil {
		err = f.medium.Sync()
	}
	if err == nil {
		err = TheDisk.SyncFolder(f.path)
	}
	if f.broken = err != nil; f.broken {
		logger.Warningf("Database %q is not on the disk as it was read, and is written anew: %v", f.path, err)
	}
}

// Origin is the zone's name.
func (f *File) Origin() []byte { return f.origin }

// IsOpen reports whether this process has it.
func (f *File) IsOpen() bool { return f.medium != nil }

// IsBroken reports that it is not known what stands in it: it takes nothing, and is to be written anew.
func (f *File) IsBroken() bool { return f.broken }

// Break says that it is not known what stands in it.
func (f *File) Break() { f.broken = true }

// Size is its octets.
func (f *File) Size() int64 { return f.size }

// IsRemoved reports whether somebody has taken its name away: what is written to a file without one is lost with the
// process. Another file in its place is what the next process is meant to have.
func (f *File) IsRemoved() bool {
	_, err := os.Lstat(f.path)
	return errors.Is(err, fs.ErrNotExist)
}

// leastRewrite is up to how many octets changes are left as they are.
const leastRewrite = 1 << 20

// HasGrown reports whether its changes are more than the version that they begin with, so that it is worth to write it
// anew.
func (f *File) HasGrown() bool {
	grown := f.size - f.snapshot
	return f.medium != nil && !f.broken && grown >= leastRewrite && grown >= f.snapshot
}

// Postpone has it grow by as much again, as it could not be written anew.
func (f *File) Postpone() { f.snapshot = f.size }

// Commit writes changes to stable storage, all or none of them, and returns the octets written. If that fails, it is as
// if nothing had been written, or the file is broken.
func (f *File) Commit(deltas ...*zone.Delta) (frame []byte, err error) {
	frame = beginFrame(nil, kindCommit)
	for _, d := range deltas {
		frame = appendTransaction(frame, d)
	}
	frame = endFrame(frame, 0)
	if _, err = f.medium.WriteAt(frame, f.size); err == nil {
		if err = f.medium.Sync(); err == nil {
			f.size += int64(len(frame))
			return frame, nil
		}
		// What a failed sync wrote is not known, and a later one may say nothing of it.
		f.broken = true
	}
	if cut := f.medium.Truncate(f.size); cut != nil {
		f.broken = true
	}
	return nil, fmt.Errorf("database %q: %w", f.path, err)
}

// Close closes and unlocks it, if it is open.
func (f *File) Close() {
	if f.medium != nil {
		f.medium.Close()
		f.unlock()
	}
}
