package database

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/coredns/coredns/plugin/pkg/zone"
)

// Anew is a database that was written beside another one, in whose place it may come.
type Anew struct {
	path           string
	medium         Medium
	size, snapshot int64
}

// snapshotFrame is how many octets of a version a frame has.
const snapshotFrame = 256 << 10

// Write writes a version of the zone to a file beside the database, and syncs it. history led to the version. The
// database may be in use meanwhile.
func (f *File) Write(v *zone.Zone, history []*zone.Delta) (*Anew, error) {
	a := &Anew{path: Beside(f.path)}
	m, err := TheDisk.Open(a.path, true)
	if err != nil {
		return nil, err
	}
	a.medium = m
	w := frameWriter{f: m}
	b := beginFrame(nil, kindZone)
	b = binary.BigEndian.AppendUint16(b, fileVersion)
	b = append(append(b, f.id[:]...), v.Origin()...)
	w.write(endFrame(b, 0))
	for _, d := range history {
		w.write(endFrame(appendTransaction(beginFrame(nil, kindHistory), d), 0))
	}
	records := uint32(0)
	b = beginFrame(b[:0], kindSnapshot)
	walk := v.Walk()
	for r, ok := walk.Next(); ok; r, ok = walk.Next() {
		if b = appendRecord(b, r); len(b) > snapshotFrame {
			w.write(endFrame(b, 0))
			b = beginFrame(b[:0], kindSnapshot)
		}
		records++
	}
	w.write(endFrame(b, 0))
	b = binary.BigEndian.AppendUint32(beginFrame(b[:0], kindEnd), records)
	w.write(endFrame(b, 0))
	if w.err == nil {
		w.err = m.Sync()
	}
	if w.err != nil {
		a.Discard()
		return nil, w.err
	}
	a.size, a.snapshot = w.at, w.at
	return a, nil
}

type frameWriter struct {
	f   Medium
	at  int64
	err error
}

func (w *frameWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	_, w.err = w.f.WriteAt(b, w.at)
	w.at += int64(len(b))
}

// Append adds what was committed since, as Commit returned it.
func (a *Anew) Append(frames [][]byte) error {
	if len(frames) == 0 {
		return nil
	}
	b := bytes.Join(frames, nil)
	if _, err := a.medium.WriteAt(b, a.size); err != nil {
		return err
	}
	a.size += int64(len(b))
	return a.medium.Sync()
}

// Discard gives the file up.
func (a *Anew) Discard() {
	a.medium.Close()
	os.Remove(a.path)
}

// Take makes a file that was written beside the database the database, under its own lock, and gives up the one that
// was there. One that does not become it is discarded. One that does in spite of an error is broken, as its name may not
// be on the disk: a crash could bring back the file before, without what is committed from now on.
func (f *File) Take(a *Anew) (taken bool, err error) {
	unlock, ok, err := lockFile(a.path)
	if err == nil && !ok {
		err = fmt.Errorf("%q %w", a.path, ErrInUse)
	}
	if err == nil {
		if err = f.moveThere(a.path); err != nil {
			unlock()
		}
	}
	if err != nil {
		a.Discard()
		return false, err
	}
	f.Close()
	err = TheDisk.SyncFolder(f.path)
	f.medium, f.size, f.snapshot, f.unlock, f.broken = a.medium, a.size, a.snapshot, unlock, err != nil
	return true, err
}

// moveThere gives a file the name of the database.
func (f *File) moveThere(from string) error {
	err := TheDisk.Rename(from, f.path)
	if err == nil || f.medium == nil || !TheDisk.KeepsNames {
		return err
	}
	// What is open may keep its name. It is broken until another one has that.
	f.Close()
	f.unlock, f.broken = func() {}, true
	return TheDisk.Rename(from, f.path)
}
